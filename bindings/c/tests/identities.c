/* Ends with keys of their own: who is there, who is let in later, and what is said of those who are not. */
#include <assert.h>
#include <braidcast.h>
#include <stdio.h>
#include <string.h>

static char said[512];

static void note(void *user, const char *text)
{
    assert(!strcmp(user, "the server"));
    strncat(said, text, sizeof said - strlen(said) - 1);
}

static braidcast_socket *with_identity(const char *file, const char *other)
{
    braidcast_config config = {.size = sizeof config, .identity = file, .authorized = &other, .authorized_count = 1};
    config.log = note;
    config.log_user = "the server";
    braidcast_socket *made = braidcast_socket_new_config(&config);
    assert(made || !fprintf(stderr, "%s\n", braidcast_last_error()));
    return made;
}

/* The last event of a new connection of `client`, and the server's number of it. */
static braidcast_event meet(braidcast_socket *server, braidcast_socket *client, const char *remote, uint64_t *there)
{
    braidcast_event event = BRAIDCAST_INIT(braidcast_event), last = BRAIDCAST_INIT(braidcast_event);
    braidcast_path path = BRAIDCAST_PATH(remote, NULL);
    uint64_t connection;
    assert(braidcast_connect(client, &path, 1, &connection) == BRAIDCAST_OK);
    *there = 0;
    for (int i = 0; i < 4000 && last.kind != BRAIDCAST_CLOSED && !(last.kind == BRAIDCAST_CONNECTED && *there); i++) {
        if (braidcast_poll(server, 5, &event) == 1 && event.kind == BRAIDCAST_CONNECTED)
            *there = event.connection;
        if (braidcast_poll(client, 5, &event) == 1 && (event.kind == BRAIDCAST_CONNECTED || event.kind == BRAIDCAST_CLOSED))
            last = event;
    }
    return last;
}

int main(int argc, char **argv)
{
    assert(argc == 4);
    char home[BRAIDCAST_FINGERPRINT_SIZE], one[BRAIDCAST_FINGERPRINT_SIZE], other[BRAIDCAST_FINGERPRINT_SIZE];
    char seen[BRAIDCAST_FINGERPRINT_SIZE], remote[32];
    assert(braidcast_identity(argv[1], home) == BRAIDCAST_OK && braidcast_identity(argv[2], one) == BRAIDCAST_OK);
    assert(braidcast_identity(argv[3], other) == BRAIDCAST_OK && strlen(other) == 64 && strcmp(one, other));
    assert(braidcast_identity("/nowhere/at/all", seen) == BRAIDCAST_ERROR_KEY);

    braidcast_socket *server = with_identity(argv[1], one);
    uint16_t port;
    assert(braidcast_bind(server, "127.0.0.1:0", &port) == BRAIDCAST_OK && braidcast_listen(server) == BRAIDCAST_OK);
    snprintf(remote, sizeof remote, "127.0.0.1:%u", port);
    braidcast_socket *client = with_identity(argv[2], home), *stranger = with_identity(argv[3], home);
    uint64_t there;
    assert(meet(server, client, remote, &there).kind == BRAIDCAST_CONNECTED);
    assert(braidcast_peer(server, there, seen) == 1 && !strcmp(seen, one));
    braidcast_event end = meet(server, stranger, remote, &there);
    assert(end.kind == BRAIDCAST_CLOSED && end.reason == BRAIDCAST_REASON_INSECURE && end.code == BRAIDCAST_INSECURE_NOT_LET_IN);
    braidcast_event event = BRAIDCAST_INIT(braidcast_event);
    for (int i = 0; i < 2000 && !*said; i++)
        braidcast_poll(server, 5, &event);
    assert(strstr(said, "turned away 127.0.0.1:"));
    const char *both[] = {one, other};
    assert(braidcast_set_authorized(server, both, 2) == BRAIDCAST_OK);
    assert(meet(server, stranger, remote, &there).kind == BRAIDCAST_CONNECTED);
    assert(braidcast_peer(server, there, seen) == 1 && !strcmp(seen, other));
    braidcast_socket_free(stranger);
    braidcast_socket_free(client);
    braidcast_socket_free(server);
    return 0;
}
