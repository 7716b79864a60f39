/* What every server of ours on usrsctp begins with. */
#ifndef SERVER_H
#define SERVER_H

#include <arpa/inet.h>
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

/* A socket of usrsctp over the UDP port that the first argument names; ends the program unless the arguments are UDP_PORT SCTP_PORT. */
static struct socket *server_socket(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s UDP_PORT SCTP_PORT\n", argv[0]);
        exit(2);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    usrsctp_init((uint16_t)atoi(argv[1]), NULL, quiet);
    /* Without it the association ends when a second address joins. */
    usrsctp_sysctl_set_sctp_blackhole(2);
    struct socket *server = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    if (server == NULL) fail("socket");
    return server;
}

/* Listens on the SCTP port that the second argument names, and says so. */
static void serve_on(struct socket *server, char **argv) {
    struct sockaddr_in at;
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t)atoi(argv[2]));
    if (usrsctp_bind(server, (struct sockaddr *)&at, sizeof at) < 0) fail("bind");
    if (usrsctp_listen(server, 1) < 0) fail("listen");
    printf("listening\n");
}

static struct socket *next_client(struct socket *server) {
    struct socket *sock = usrsctp_accept(server, NULL, NULL);
    if (sock == NULL) fail("accept");
    return sock;
}

#endif
