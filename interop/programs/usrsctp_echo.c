/* A server on usrsctp that sends each message back as it came, with its stream and payload protocol, to who may join with more addresses.
 *
 * usrsctp_echo UDP_PORT SCTP_PORT
 * Prints "listening"; serves one association after the other.
 */
#include <arpa/inet.h>
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

static void serve(struct socket *sock) {
    static char message[65536];
    for (;;) {
        struct sockaddr_in from;
        struct sctp_rcvinfo info;
        socklen_t from_len = sizeof from, info_len = sizeof info;
        unsigned int kind = 0;
        int flags = 0;
        ssize_t len = usrsctp_recvv(sock, message, sizeof message, (struct sockaddr *)&from, &from_len, &info, &info_len,
                                    &kind, &flags);
        if (len <= 0) break;
        if (kind != SCTP_RECVV_RCVINFO || (flags & MSG_NOTIFICATION)) continue;
        struct sctp_sndinfo back;
        memset(&back, 0, sizeof back);
        back.snd_sid = info.rcv_sid;
        back.snd_ppid = info.rcv_ppid;
        back.snd_flags = info.rcv_flags & SCTP_UNORDERED;
        if (usrsctp_sendv(sock, message, (size_t)len, NULL, 0, &back, sizeof back, SCTP_SENDV_SNDINFO, 0) < 0) break;
    }
    usrsctp_close(sock);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: usrsctp_echo UDP_PORT SCTP_PORT\n");
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
    for (;;) {
        struct socket *sock = usrsctp_accept(server, NULL, NULL);
        if (sock == NULL) fail("accept");
        int on = 1;
        usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on);
        serve(sock);
    }
}
