/* The same by libsrt, over one network and encrypted: srt ADDRESS PORT */
#include <arpa/inet.h>
#include <srt/srt.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const char key[] = "a passphrase that both ends know";
    struct sockaddr_in to = {.sin_family = AF_INET};
    SRT_TRANSTYPE file = SRTT_FILE;
    int messages = 1;
    if (argc != 3 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
        return 1;
    to.sin_port = htons((uint16_t)atoi(argv[2]));
    srt_startup();
    SRTSOCKET sock = srt_create_socket();
    /* Messages have a time of their own in file mode alone; live mode has one latency for all. */
    if (srt_setsockflag(sock, SRTO_TRANSTYPE, &file, sizeof file) < 0 ||
        srt_setsockflag(sock, SRTO_MESSAGEAPI, &messages, sizeof messages) < 0 ||
        srt_setsockflag(sock, SRTO_PASSPHRASE, key, sizeof key - 1) < 0 ||
        srt_connect(sock, (struct sockaddr *)&to, sizeof to) < 0 ||
        srt_sendmsg(sock, "hello", 5, 200, 0) < 0)
        return fprintf(stderr, "%s\n", srt_getlasterror_str()), 1;
    /* It waits for what was sent (SRTO_LINGER). */
    srt_close(sock);
    srt_cleanup();
    return 0;
}
