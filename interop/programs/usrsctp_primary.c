/* A server on usrsctp that asks its client to send to an address of the server's (SCTP_SET_PEER_PRIMARY_ADDR) when a message names one.
 *
 * usrsctp_primary UDP_PORT SCTP_PORT
 * Prints "listening", and "asked RESULT" for each message.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <usrsctp.h>

static void quiet(const char *format, ...) { (void)format; }

static void fail(const char *what) {
    perror(what);
    exit(1);
}

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
    if (argc != 3) {
        fprintf(stderr, "usage: usrsctp_primary UDP_PORT SCTP_PORT\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    usrsctp_init((uint16_t)atoi(argv[1]), NULL, quiet);
    /* Without it the association ends when a second address joins. */
    usrsctp_sysctl_set_sctp_blackhole(2);
    struct socket *server = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    if (server == NULL) fail("socket");
    struct sockaddr_in at;
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t)atoi(argv[2]));
    if (usrsctp_bind(server, (struct sockaddr *)&at, sizeof at) < 0) fail("bind");
    if (usrsctp_listen(server, 1) < 0) fail("listen");
    printf("listening\n");
    struct socket *sock = usrsctp_accept(server, NULL, NULL);
    if (sock == NULL) fail("accept");
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
