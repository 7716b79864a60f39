/* A server on Linux's SCTP that begins with one address and changes its addresses as it is told.
 *
 * linux_addresses PORT ADDRESS
 * Takes one client. Each message is "add ADDRESS", "remove ADDRESS" (of its own: ASCONF, RFC 5061 §4.2.1, §4.2.2) or "primary ADDRESS" (which of its own
 * the client is to send to, §4.2.4); after it the program prints the message and "ok" or why not. Any other message goes back as it came.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sctp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int port;

static struct sockaddr_in at(const char *address) {
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    if (inet_pton(AF_INET, address, &addr.sin_addr) != 1) {
        printf("not an address: %s\n", address);
        exit(2);
    }
    return addr;
}

static void must(int result, const char *what) {
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

/* Whether the message was a wish. */
static int obey(int sock, const char *message) {
    char verb[10], address[50];
    if (sscanf(message, "%9[a-z] %49[0-9.]", verb, address) != 2) return 0;
    struct sockaddr_in addr = at(address);
    int result;
    if (strcmp(verb, "primary") == 0) {
        struct sctp_setpeerprim wish = {0};
        memcpy(&wish.sspp_addr, &addr, sizeof addr);
        result = setsockopt(sock, IPPROTO_SCTP, SCTP_SET_PEER_PRIMARY_ADDR, &wish, sizeof wish);
    } else {
        int what = strcmp(verb, "add") == 0 ? SCTP_SOCKOPT_BINDX_ADD : SCTP_SOCKOPT_BINDX_REM;
        result = setsockopt(sock, IPPROTO_SCTP, what, &addr, sizeof addr);
    }
    printf("%s %s\n", message, result < 0 ? strerror(errno) : "ok");
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s PORT ADDRESS\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    port = atoi(argv[1]);
    int server = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    must(server, "socket");
    struct sockaddr_in addr = at(argv[2]);
    must(bind(server, (struct sockaddr *)&addr, sizeof addr), "bind");
    must(listen(server, 1), "listen");
    printf("listening\n");
    int sock = accept(server, NULL, NULL);
    must(sock, "accept");
    for (;;) {
        char message[100];
        ssize_t len = recv(sock, message, sizeof message - 1, 0);
        if (len <= 0) return 0;
        message[len] = 0;
        if (!obey(sock, message)) must((int)send(sock, message, (size_t)len, 0), "send");
    }
}
