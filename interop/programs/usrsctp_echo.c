/* A server on usrsctp that sends each message back as it came, with its stream and payload protocol, to who may join with more addresses.
 *
 * usrsctp_echo UDP_PORT SCTP_PORT
 * Prints "listening"; serves one association after the other.
 */
#include "server.h"

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
    struct socket *server = server_socket(argc, argv);
    serve_on(server, argv);
    for (;;) {
        struct socket *sock = next_client(server);
        int on = 1;
        usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on);
        serve(sock);
    }
}
