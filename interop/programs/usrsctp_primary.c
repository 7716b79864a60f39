/* A server on usrsctp that asks its client to send to an address of the server's (SCTP_SET_PEER_PRIMARY_ADDR) when a message names one.
 *
 * usrsctp_primary UDP_PORT SCTP_PORT
 * Prints "listening", and "asked RESULT" for each message.
 */
#include "server.h"
#include <errno.h>

static void ask(struct socket *sock, const char *address) {
    struct sctp_setpeerprim wish;
    memset(&wish, 0, sizeof wish);
    struct sockaddr_in *v4 = (struct sockaddr_in *)&wish.sspp_addr;
    v4->sin_family = AF_INET;
    inet_pton(AF_INET, address, &v4->sin_addr);
    int result = usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_SET_PEER_PRIMARY_ADDR, &wish, sizeof wish);
    printf("asked %s\n", result < 0 ? strerror(errno) : "ok");
}

int main(int argc, char **argv) {
    struct socket *server = server_socket(argc, argv);
    serve_on(server, argv);
    struct socket *sock = next_client(server);
    char message[100];
    for (;;) {
        struct sockaddr_in from;
        struct sctp_rcvinfo info;
        socklen_t from_len = sizeof from, info_len = sizeof info;
        unsigned int kind = 0;
        int flags = 0;
        ssize_t len = usrsctp_recvv(sock, message, sizeof message - 1, (struct sockaddr *)&from, &from_len, &info,
                                    &info_len, &kind, &flags);
        if (len <= 0) return 0;
        message[len] = 0;
        ask(sock, message);
    }
}
