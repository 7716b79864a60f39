/* A server on usrsctp that resets and adds streams (RFC 6525), and says what its client does to them.
 *
 * usrsctp_streams UDP_PORT SCTP_PORT
 * Prints "listening", "got STREAM SSN[ failed to send]" for each message, "reset in|out|denied|failed STREAM …" and
 * "streams IN OUT [denied|failed]" for each notification. Each message is sent back on its stream, unless it is an
 * order: "reset-out S", "reset-in S", "add-out N", "add-in N".
 */
#include "server.h"
#include <errno.h>

static void reset(struct socket *sock, uint16_t flags, uint16_t stream) {
    char room[sizeof(struct sctp_reset_streams) + sizeof(uint16_t)];
    struct sctp_reset_streams *wish = (struct sctp_reset_streams *)room;
    memset(room, 0, sizeof room);
    wish->srs_flags = flags;
    wish->srs_number_streams = 1;
    wish->srs_stream_list[0] = stream;
    int result = usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_RESET_STREAMS, wish, sizeof room);
    printf("asked %s\n", result < 0 ? strerror(errno) : "ok");
}

static void add(struct socket *sock, uint16_t in, uint16_t out) {
    struct sctp_add_streams wish;
    memset(&wish, 0, sizeof wish);
    wish.sas_instrms = in;
    wish.sas_outstrms = out;
    int result = usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_ADD_STREAMS, &wish, sizeof wish);
    printf("asked %s\n", result < 0 ? strerror(errno) : "ok");
}

static void tell(const union sctp_notification *it) {
    if (it->sn_header.sn_type == SCTP_STREAM_RESET_EVENT) {
        const struct sctp_stream_reset_event *event = &it->sn_strreset_event;
        unsigned count = (event->strreset_length - sizeof *event) / sizeof(uint16_t);
        printf("reset%s%s%s%s", event->strreset_flags & SCTP_STREAM_RESET_INCOMING_SSN ? " in" : "",
               event->strreset_flags & SCTP_STREAM_RESET_OUTGOING_SSN ? " out" : "",
               event->strreset_flags & SCTP_STREAM_RESET_DENIED ? " denied" : "",
               event->strreset_flags & SCTP_STREAM_RESET_FAILED ? " failed" : "");
        for (unsigned i = 0; i < count; i++) printf(" %u", event->strreset_stream_list[i]);
        printf("\n");
    } else if (it->sn_header.sn_type == SCTP_STREAM_CHANGE_EVENT) {
        const struct sctp_stream_change_event *event = &it->sn_strchange_event;
        printf("streams %u %u%s%s\n", event->strchange_instrms, event->strchange_outstrms,
               event->strchange_flags & SCTP_STREAM_CHANGE_DENIED ? " denied" : "",
               event->strchange_flags & SCTP_STREAM_CHANGE_FAILED ? " failed" : "");
    }
}

static void set(struct socket *sock, int name, const void *value, socklen_t len, const char *what) {
    if (usrsctp_setsockopt(sock, IPPROTO_SCTP, name, value, len) < 0) fail(what);
}

int main(int argc, char **argv) {
    struct socket *server = server_socket(argc, argv);
    struct sctp_assoc_value allow = {.assoc_id = SCTP_FUTURE_ASSOC,
                                     .assoc_value = SCTP_ENABLE_RESET_STREAM_REQ | SCTP_ENABLE_CHANGE_ASSOC_REQ};
    set(server, SCTP_ENABLE_STREAM_RESET, &allow, sizeof allow, "SCTP_ENABLE_STREAM_RESET");
    serve_on(server, argv);
    struct socket *sock = next_client(server);
    const uint16_t kinds[] = {SCTP_STREAM_RESET_EVENT, SCTP_STREAM_CHANGE_EVENT};
    for (unsigned i = 0; i < 2; i++) {
        struct sctp_event event = {.se_assoc_id = SCTP_ALL_ASSOC, .se_type = kinds[i], .se_on = 1};
        set(sock, SCTP_EVENT, &event, sizeof event, "SCTP_EVENT");
    }
    int on = 1;
    set(sock, SCTP_RECVRCVINFO, &on, sizeof on, "SCTP_RECVRCVINFO");
    char message[2000];
    for (;;) {
        struct sockaddr_in from;
        struct sctp_rcvinfo info;
        socklen_t from_len = sizeof from, info_len = sizeof info;
        unsigned int kind = 0;
        int flags = 0;
        memset(&info, 0, sizeof info);
        ssize_t len = usrsctp_recvv(sock, message, sizeof message - 1, (struct sockaddr *)&from, &from_len, &info,
                                    &info_len, &kind, &flags);
        if (len <= 0) return 0;
        message[len] = 0;
        unsigned number = 0;
        if (flags & MSG_NOTIFICATION) {
            tell((const union sctp_notification *)message);
        } else if (sscanf(message, "reset-out %u", &number) == 1) {
            reset(sock, SCTP_STREAM_RESET_OUTGOING, (uint16_t)number);
        } else if (sscanf(message, "reset-in %u", &number) == 1) {
            reset(sock, SCTP_STREAM_RESET_INCOMING, (uint16_t)number);
        } else if (sscanf(message, "add-out %u", &number) == 1) {
            add(sock, 0, (uint16_t)number);
        } else if (sscanf(message, "add-in %u", &number) == 1) {
            add(sock, (uint16_t)number, 0);
        } else {
            struct sctp_sndinfo how;
            memset(&how, 0, sizeof how);
            how.snd_sid = info.rcv_sid;
            /* Sent first, told then: usrsctp answers a request to reset a stream in a thread of its own, and what is sent
             * on the stream meanwhile is refused, or has a number of before the reset. Of the client's streams only 1 is
             * reset, and those that we do not have ourselves are refused always. */
            ssize_t sent = usrsctp_sendv(sock, message, (size_t)len, NULL, 0, &how, sizeof how, SCTP_SENDV_SNDINFO, 0);
            printf("got %u %u%s\n", info.rcv_sid, info.rcv_ssn, sent < 0 && info.rcv_sid == 1 ? " failed to send" : "");
        }
    }
}
