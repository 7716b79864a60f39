/* Ten messages over two paths of this machine and back. Both ends stand in one program, which waits with poll(2).
 *
 *   cc two_paths.c -lbraidcast -o two_paths && ./two_paths */
#include <braidcast.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int code, const char *what)
{
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", what, braidcast_last_error());
        exit(1);
    }
}

int main(void)
{
    const char *key = "a passphrase that both ends know";
    braidcast_socket *server = braidcast_socket_new(key, 0), *client = braidcast_socket_new(key, 0);
    if (!server || !client)
        must(-1, "socket");

    /* Two addresses of the server make two paths. In the field each would have an interface: .via = "wlan0". */
    char remote[2][32];
    braidcast_path paths[2];
    for (int i = 0; i < 2; i++) {
        uint16_t port;
        must(braidcast_bind(server, "127.0.0.1:0", &port), "bind");
        snprintf(remote[i], sizeof remote[i], "127.0.0.1:%u", port);
        paths[i] = (braidcast_path)BRAIDCAST_PATH(remote[i], NULL);
    }
    must(braidcast_listen(server), "listen");
    uint64_t connection;
    must(braidcast_connect(client, paths, 2, &connection), "connect");

    int up = 0, sent = 0, answered = 0, closed = 0;
    braidcast_event event = BRAIDCAST_INIT(braidcast_event);
    braidcast_message message = BRAIDCAST_INIT(braidcast_message);
    while (closed < 2) {
        /* Both do what there is to do, until they have to wait. */
        while (braidcast_poll(server, 0, &event) == 1) {
            if (event.kind == BRAIDCAST_READABLE)
                while (braidcast_recv(server, event.connection, &message) == 1)
                    must(braidcast_send(server, event.connection, message.data, message.len, NULL), "answer");
            else if (event.kind == BRAIDCAST_CLOSED)
                closed++;
        }
        while (braidcast_poll(client, 0, &event) == 1) {
            switch (event.kind) {
            case BRAIDCAST_PATH_UP:
                printf("path to %s is up\n", event.text);
                up++;
                break;
            case BRAIDCAST_READABLE:
                while (braidcast_recv(client, connection, &message) == 1) {
                    printf("answer: %.*s\n", (int)message.len, (const char *)message.data);
                    answered++;
                }
                break;
            case BRAIDCAST_CLOSED:
                printf("closed: %s\n", event.text);
                closed++;
                break;
            }
        }
        if (up == 2 && sent < 10) {
            braidcast_send_options options = {.size = sizeof options, .stream = 1};
            while (sent < 10) {
                char text[32];
                int len = snprintf(text, sizeof text, "message %d", ++sent);
                must(braidcast_send(client, connection, text, len, &options), "send");
            }
            continue; /* it leaves in the next braidcast_poll */
        }
        if (answered == 10) {
            must(braidcast_shutdown(client, connection), "shutdown");
            answered++;
            continue;
        }
        struct pollfd both[2] = {{braidcast_fd(server), POLLIN, 0}, {braidcast_fd(client), POLLIN, 0}};
        if (closed < 2 && poll(both, 2, 20000) == 0) {
            fprintf(stderr, "nothing happened for 20 seconds\n");
            return 1;
        }
    }
    braidcast_socket_free(server);
    braidcast_socket_free(client);
    return answered == 11 ? 0 : 1;
}
