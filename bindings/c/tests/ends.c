/* How connections end, and a socket that two threads use. Both ends stand in one program. */
#include <assert.h>
#include <braidcast.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static braidcast_socket *server, *client;
static char remote[32];
static braidcast_event event = BRAIDCAST_INIT(braidcast_event);
static braidcast_message message = BRAIDCAST_INIT(braidcast_message);

static uint64_t connect_client(void)
{
    braidcast_path path = BRAIDCAST_PATH(remote, NULL);
    uint64_t connection;
    assert(braidcast_connect(client, &path, 1, &connection) == BRAIDCAST_OK);
    for (int connected = 0; connected < 2;) {
        while (braidcast_poll(server, 1, &event) == 1)
            connected += event.kind == BRAIDCAST_CONNECTED;
        while (braidcast_poll(client, 1, &event) == 1)
            connected += event.kind == BRAIDCAST_CONNECTED;
    }
    return connection;
}

/* The server reads one message for each event; what came before an abort is read before the end is told. */
static void abort_with(const char *reason, size_t told)
{
    uint64_t connection = connect_client();
    assert(braidcast_send(client, connection, "one", 3, NULL) == BRAIDCAST_OK);
    assert(braidcast_send(client, connection, "two", 3, NULL) == BRAIDCAST_OK);
    while (braidcast_poll(client, 0, &event) == 1) {
    }
    assert(braidcast_abort(client, connection, 7, reason) == BRAIDCAST_OK);
    assert(braidcast_poll(client, 1000, &event) == 1 && event.kind == BRAIDCAST_CLOSED);
    assert(event.reason == BRAIDCAST_REASON_ABORTED);
    char got[16] = "";
    do {
        assert(braidcast_poll(server, 10000, &event) == 1);
        if (event.kind == BRAIDCAST_READABLE && braidcast_recv(server, event.connection, &message) == 1)
            strncat(got, (const char *)message.data, message.len);
    } while (event.kind != BRAIDCAST_CLOSED);
    assert(!strcmp(got, "onetwo") && event.reason == BRAIDCAST_REASON_ABORTED_BY_PEER);
    assert(event.code == 7 && strlen(event.text) == told && !strncmp(event.text, reason, told));
    assert(event.len == told && !memcmp(event.data, reason, told));
    /* The socket is as good as before. */
    assert(braidcast_send(client, connection, "x", 1, NULL) == BRAIDCAST_ERROR_NO_CONNECTION);
}

static void *poll_for_ever(void *unused)
{
    braidcast_event told = BRAIDCAST_INIT(braidcast_event);
    (void)unused;
    while (braidcast_poll(client, -1, &told) == 1) {
    }
    return NULL;
}

int main(void)
{
    uint16_t port;
    assert(braidcast_version() == BRAIDCAST_VERSION);
    server = braidcast_socket_new(NULL, BRAIDCAST_PLAIN);
    client = braidcast_socket_new(NULL, BRAIDCAST_PLAIN);
    assert(server && client && braidcast_bind(server, "127.0.0.1:0", &port) == BRAIDCAST_OK);
    assert(braidcast_listen(server) == BRAIDCAST_OK);
    snprintf(remote, sizeof remote, "127.0.0.1:%u", port);

    abort_with("bye", 3);
    char *much = malloc(70001);
    memset(much, 'r', 70000);
    much[70000] = 0;
    abort_with(much, 256 - strlen("#7 "));
    free(much);

    /* Any bytes, which no string has. */
    uint64_t connection = connect_client();
    assert(braidcast_abort_with(client, connection, 9, NULL, 3) == BRAIDCAST_ERROR_ARGUMENT);
    assert(braidcast_abort_with(client, connection, 9, (const uint8_t *)"a\0\xff", 3) == BRAIDCAST_OK);
    assert(braidcast_poll(client, 1000, &event) == 1 && event.kind == BRAIDCAST_CLOSED);
    do
        assert(braidcast_poll(server, 10000, &event) == 1);
    while (event.kind != BRAIDCAST_CLOSED);
    assert(event.code == 9 && event.len == 3 && !memcmp(event.data, "a\0\xff", 3));
    while (braidcast_poll(client, 0, &event) == 1) {
    }

    connection = connect_client();
    braidcast_path_report paths[2] = {BRAIDCAST_INIT(braidcast_path_report)};
    assert(braidcast_paths(client, connection, paths, 2) == 1);
    assert(!strcmp(paths[0].name, remote) && paths[0].state == BRAIDCAST_PATH_ACTIVE && paths[0].sent_bytes > 0);
    assert(braidcast_paths(client, connection, NULL, 0) == 1);

    /* One thread waits for ever; another one sends, and each message leaves at once. */
    pthread_t thread;
    assert(!pthread_create(&thread, NULL, poll_for_ever, NULL));
    braidcast_send_options how = {.size = sizeof how, .report = 1, .context = 7, .priority = 2};
    time_t began = time(NULL);
    for (int sent = 0; sent < 50; sent++) {
        assert(braidcast_send(client, connection, "from another thread", 19, &how) == BRAIDCAST_OK);
        int got = 0;
        while (!got) {
            assert(braidcast_poll(server, 10000, &event) == 1);
            while (event.kind == BRAIDCAST_READABLE && braidcast_recv(server, event.connection, &message) == 1)
                got += message.len == 19 && message.unordered == 0 && !message.late && message.age_us < 0;
        }
    }
    assert(time(NULL) - began < 20);
    size_t bytes = 1;
    for (int i = 0; bytes > 0 && i < 1000; i++) {
        braidcast_poll(server, 1, &event);
        assert(braidcast_buffered(client, connection, &bytes) == BRAIDCAST_OK);
    }
    assert(bytes == 0);
    assert(braidcast_interrupt(client) == BRAIDCAST_OK);
    assert(!pthread_join(thread, NULL));

    braidcast_socket_free(client);
    do
        assert(braidcast_poll(server, 10000, &event) == 1);
    while (event.kind != BRAIDCAST_CLOSED);
    assert(event.reason == BRAIDCAST_REASON_ABORTED_BY_PEER && braidcast_close(server, 1000) == 1);
    braidcast_socket_free(server);
    return 0;
}
