/* A message that is worth nothing after 200 ms, over two networks: braidcast HOST:PORT@VIA HOST:PORT@VIA */
#include <braidcast.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    braidcast_socket *sock = argc == 3 ? braidcast_socket_new("a passphrase that both ends know", 0) : NULL;
    braidcast_path paths[2] = {BRAIDCAST_PATH(argv[1], NULL), BRAIDCAST_PATH(argv[2], NULL)};
    braidcast_send_options how = {.size = sizeof how, .stream = 1, .unordered = 1, .deadline_ms = 200};
    braidcast_event event = BRAIDCAST_INIT(braidcast_event);
    uint64_t connection;
    if (!sock || braidcast_connect(sock, paths, 2, &connection) < 0)
        return fprintf(stderr, "%s\n", braidcast_last_error()), 1;
    while (braidcast_poll(sock, 10000, &event) == 1 && event.kind != BRAIDCAST_CONNECTED) {
    }
    if (braidcast_send(sock, connection, (const uint8_t *)"hello", 5, &how) < 0)
        return fprintf(stderr, "%s\n", braidcast_last_error()), 1;
    int orderly = braidcast_close(sock, 5000);
    braidcast_socket_free(sock);
    return orderly == 1 ? 0 : 1;
}
