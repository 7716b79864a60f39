/* What is configured of messages and connections, sockets of the program's own, and which connections there are. */
#include <arpa/inet.h>
#include <assert.h>
#include <braidcast.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SAYS(words) (assert(strstr(braidcast_last_error(), words) || !fprintf(stderr, "%s\n", braidcast_last_error())))

static braidcast_event event = BRAIDCAST_INIT(braidcast_event);

/* Both go on until `socket` is told `kind`. Returns of which connection. */
static uint64_t wait_for(braidcast_socket *socket, braidcast_socket *other, int kind)
{
    for (int i = 0; i < 20000; i++) {
        while (braidcast_poll(other, 0, &event) == 1) {
        }
        if (braidcast_poll(socket, 1, &event) == 1 && event.kind == kind)
            return event.connection;
    }
    assert(!"nothing happened for long");
    return 0;
}

static int count_opened(void *user, int fd)
{
    int type = 0;
    socklen_t len = sizeof type;
    assert(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_DGRAM);
    ++*(int *)user;
    return 0;
}

static int refuse(void *user, int fd)
{
    (void)user, (void)fd;
    return EPERM;
}

/* A socket that is bound by the program, and closed after it was given. */
static void adopt(braidcast_socket *server, char *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    assert(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    assert(braidcast_adopt(server, fd, NULL) == BRAIDCAST_OK);
    assert(braidcast_adopt(server, fd, address) == BRAIDCAST_OK && close(fd) == 0);
    char expected[32];
    snprintf(expected, sizeof expected, "127.0.0.1:%u", ntohs(at.sin_port));
    assert(!strcmp(address, expected));
}

int main(void)
{
    char address[BRAIDCAST_NAME_SIZE];
    uint64_t connections[3] = {77, 77, 77}, first, second, at_server;
    static char data[200000];
    int opened = 0;

    braidcast_config config = BRAIDCAST_INIT(braidcast_config);
    config.flags = BRAIDCAST_PLAIN;
    config.receive_buffer = 100000;
    config.max_message = 100001;
    assert(!braidcast_socket_new_config(&config));
    SAYS("max_message");
    config.max_message = 0;
    braidcast_socket *server = braidcast_socket_new_config(&config);
    config.receive_buffer = 0;
    config.max_message = 1000;
    braidcast_socket *client = braidcast_socket_new_config(&config);
    assert(server && client);

    assert(braidcast_adopt(server, -1, NULL) == BRAIDCAST_ERROR_ARGUMENT);
    SAYS("-1 is not a file descriptor");
    assert(braidcast_adopt(server, 1 << 20, NULL) == BRAIDCAST_ERROR_SYSTEM);
    SAYS("Bad file descriptor");
    int pipes[2];
    assert(pipe(pipes) == 0 && braidcast_adopt(server, pipes[0], NULL) == BRAIDCAST_ERROR_PATH);
    SAYS("non-socket");
    adopt(server, address);
    assert(braidcast_listen(server) == BRAIDCAST_OK);

    assert(braidcast_on_open(NULL, count_opened, &opened) == BRAIDCAST_ERROR_ARGUMENT);
    assert(braidcast_on_open(client, count_opened, &opened) == BRAIDCAST_OK);
    braidcast_path path = BRAIDCAST_PATH(address, NULL);
    assert(braidcast_connect(client, &path, 1, &first) == BRAIDCAST_OK && opened == 1);
    assert(wait_for(client, server, BRAIDCAST_CONNECTED) == first);
    assert(braidcast_send(client, first, data, 1001, NULL) == BRAIDCAST_ERROR_SEND);
    SAYS("1000");
    assert(braidcast_send(client, first, data, 1000, NULL) == BRAIDCAST_OK);
    at_server = wait_for(server, client, BRAIDCAST_READABLE);
    /* The longest message is as long as the smaller buffer. */
    assert(braidcast_send(server, at_server, data, 100001, NULL) == BRAIDCAST_ERROR_SEND);
    SAYS("100000");
    assert(braidcast_send(server, at_server, data, 100000, NULL) == BRAIDCAST_OK);

    assert(braidcast_on_open(client, refuse, NULL) == BRAIDCAST_OK);
    assert(braidcast_connect(client, &path, 1, &second) == BRAIDCAST_ERROR_PATH);
    SAYS("Operation not permitted");
    assert(braidcast_on_open(client, NULL, NULL) == BRAIDCAST_OK);

    assert(braidcast_connect(client, &path, 1, &second) == BRAIDCAST_OK && opened == 1);
    assert(braidcast_connections(client, NULL, 0) == 2);
    assert(braidcast_connections(client, NULL, 1) == BRAIDCAST_ERROR_ARGUMENT);
    assert(braidcast_connections(client, connections, 1) == 2 && connections[0] == first && connections[1] == 77);
    assert(braidcast_connections(client, connections, 3) == 2 && connections[0] == first);
    assert(connections[1] == second && connections[2] == 77);
    assert(braidcast_abort(client, first, 0, NULL) == BRAIDCAST_OK);
    assert(wait_for(client, server, BRAIDCAST_CLOSED) == first);
    assert(braidcast_connections(client, connections, 3) == 1 && connections[0] == second);
    braidcast_socket_free(client);
    braidcast_socket_free(server);

    /* Who takes nobody. */
    config.max_connections = -1;
    server = braidcast_socket_new_config(&config);
    config.max_connections = 1;
    client = braidcast_socket_new_config(&config);
    assert(server && client);
    adopt(server, address);
    assert(braidcast_listen(server) == BRAIDCAST_OK);
    assert(braidcast_connect(client, &path, 1, &first) == BRAIDCAST_OK);
    assert(wait_for(client, server, BRAIDCAST_CLOSED) == first);
    assert(braidcast_connections(server, connections, 3) == 0);
    braidcast_socket_free(client);
    braidcast_socket_free(server);
    return 0;
}
