/* Who takes the message of docs/examples/compare/srt.c, and prints it. Prints its port first. */
#include <arpa/inet.h>
#include <srt/srt.h>
#include <stdio.h>

int main(void)
{
    const char key[] = "a passphrase that both ends know";
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    SRT_TRANSTYPE file = SRTT_FILE;
    int messages = 1, len = sizeof at;
    char message[1500];
    srt_startup();
    SRTSOCKET sock = srt_create_socket();
    if (srt_setsockflag(sock, SRTO_TRANSTYPE, &file, sizeof file) < 0 ||
        srt_setsockflag(sock, SRTO_MESSAGEAPI, &messages, sizeof messages) < 0 ||
        srt_setsockflag(sock, SRTO_PASSPHRASE, key, sizeof key - 1) < 0 ||
        srt_bind(sock, (struct sockaddr *)&at, sizeof at) < 0 || srt_listen(sock, 1) < 0 ||
        srt_getsockname(sock, (struct sockaddr *)&at, &len) < 0)
        return fprintf(stderr, "%s\n", srt_getlasterror_str()), 1;
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    int got = srt_recvmsg(srt_accept(sock, NULL, NULL), message, sizeof message);
    if (got < 0)
        return fprintf(stderr, "%s\n", srt_getlasterror_str()), 1;
    printf("%.*s\n", got, message);
    return 0;
}
