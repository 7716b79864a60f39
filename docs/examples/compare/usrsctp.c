/* The same by usrsctp, to one address and not encrypted: usrsctp ADDRESS UDP_PORT */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <usrsctp.h>

int main(int argc, char **argv)
{
    struct sctp_udpencaps udp = {.sue_address.ss_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9899)};
    struct sctp_sendv_spa how = {.sendv_flags = SCTP_SEND_SNDINFO_VALID | SCTP_SEND_PRINFO_VALID};
    how.sendv_sndinfo.snd_sid = 1;
    how.sendv_sndinfo.snd_flags = SCTP_UNORDERED;
    how.sendv_prinfo.pr_policy = SCTP_PR_SCTP_TTL;
    how.sendv_prinfo.pr_value = 200;
    if (argc != 3 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
        return 1;
    udp.sue_port = htons((uint16_t)atoi(argv[2]));
    /* Port 0 would send over IP itself, for which a program must be root. */
    usrsctp_init((uint16_t)(20000 + getpid() % 40000), NULL, NULL);
    /* All addresses of the other end carry data, if it has several. */
    usrsctp_sysctl_set_sctp_cmt_on_off(1);
    struct socket *sock = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    if (!sock || usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp) < 0 ||
        usrsctp_connect(sock, (struct sockaddr *)&to, sizeof to) < 0 ||
        usrsctp_sendv(sock, "hello", 5, NULL, 0, &how, sizeof how, SCTP_SENDV_SPA, 0) < 0)
        return perror("usrsctp"), 1;
    usrsctp_close(sock);
    while (usrsctp_finish() != 0)
        usleep(10000);
    return 0;
}
