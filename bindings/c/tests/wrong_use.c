/* Wrong uses get an error with words; none crashes. */
#include <assert.h>
#include <braidcast.h>
#include <stdio.h>
#include <string.h>

#define SAYS(words) (assert(strstr(braidcast_last_error(), words) || !fprintf(stderr, "%s\n", braidcast_last_error())))

int main(void)
{
    braidcast_event event = BRAIDCAST_INIT(braidcast_event);
    braidcast_message message = BRAIDCAST_INIT(braidcast_message);
    uint64_t connection;
    uint16_t port = 0;

    assert(!braidcast_socket_new("", 0));
    SAYS("the key");
    assert(!braidcast_socket_new("some passphrase", BRAIDCAST_PLAIN));
    SAYS("a key needs encryption");
    assert(!braidcast_socket_new(NULL, 64));
    SAYS("flags 0x40");
    assert(!braidcast_socket_new("\xff\xfe", 0));
    SAYS("not UTF-8");

    braidcast_config config = BRAIDCAST_INIT(braidcast_config);
    const char *nobody[] = {"nobody"};
    config.profile = 77;
    assert(!braidcast_socket_new_config(&config));
    SAYS("profile 77 is unknown");
    config.profile = BRAIDCAST_PROFILE_VOICE;
    config.fec = "much";
    assert(!braidcast_socket_new_config(&config));
    SAYS("'much' is not a code");
    config.fec = "tetrys:10,9,200";
    config.scheduler = "best";
    assert(!braidcast_socket_new_config(&config));
    SAYS("earliest-delivery");
    config.scheduler = "earliest-delivery";
    config.queue = "best";
    assert(!braidcast_socket_new_config(&config));
    SAYS("in-time");
    config.queue = "in-time";
    config.authorized = nobody;
    config.authorized_count = 1;
    assert(!braidcast_socket_new_config(&config));
    SAYS("needs an identity");
    config.identity = "/nowhere/at/all";
    assert(!braidcast_socket_new_config(&config));
    SAYS("/nowhere/at/all: No such file");
    config.key = "a passphrase of some length";
    assert(!braidcast_socket_new_config(&config));
    SAYS("do not go together");
    config.size = 0;
    assert(!braidcast_socket_new_config(&config));
    SAYS("set `size` to sizeof");

    braidcast_socket *it = braidcast_socket_new(NULL, BRAIDCAST_PLAIN);
    assert(it && braidcast_fd(it) >= 0);
    assert(braidcast_fd(NULL) == BRAIDCAST_ERROR_ARGUMENT);
    assert(braidcast_poll(NULL, 0, &event) == BRAIDCAST_ERROR_ARGUMENT);
    SAYS("null pointer");
    assert(braidcast_poll(it, 0, NULL) == BRAIDCAST_ERROR_ARGUMENT);
    braidcast_event unset = {0};
    assert(braidcast_poll(it, 0, &unset) == BRAIDCAST_ERROR_ARGUMENT);
    SAYS("set `size` to sizeof");
    assert(braidcast_poll(it, 0, &event) == 0 && braidcast_poll(it, 5, &event) == 0);
    assert(braidcast_bind(it, "here", &port) == BRAIDCAST_ERROR_ARGUMENT);
    SAYS("'here' is not an address with a port");
    assert(braidcast_bind(it, NULL, &port) == BRAIDCAST_ERROR_ARGUMENT);
    assert(braidcast_bind(it, "192.0.2.77:1", NULL) == BRAIDCAST_ERROR_PATH);
    SAYS("192.0.2.77 is not an address of this machine");
    assert(braidcast_bind(it, "127.0.0.1:0", &port) == BRAIDCAST_OK && port != 0);
    assert(braidcast_listen(NULL) == BRAIDCAST_ERROR_ARGUMENT);

    braidcast_path path = {0};
    assert(braidcast_connect(it, &path, 1, &connection) == BRAIDCAST_ERROR_ARGUMENT);
    SAYS("the size of a braidcast_path is given as 0");
    path = (braidcast_path)BRAIDCAST_PATH("127.0.0.1:9", "nothere0");
    assert(braidcast_connect(it, &path, 1, &connection) == BRAIDCAST_ERROR_PATH);
    SAYS("there is no nothere0");
    assert(braidcast_connect(it, &path, 0, &connection) == BRAIDCAST_ERROR_ARGUMENT);
    path.via = NULL;
    assert(braidcast_connect(it, &path, 1, NULL) == BRAIDCAST_ERROR_ARGUMENT);
    path.remote = NULL;
    assert(braidcast_connect(it, &path, 1, &connection) == BRAIDCAST_ERROR_ARGUMENT);
    SAYS("remote is NULL");

    assert(braidcast_send(it, 5, "x", 1, NULL) == BRAIDCAST_ERROR_NO_CONNECTION);
    SAYS("there is no connection 5");
    assert(braidcast_send(it, 5, NULL, 1, NULL) == BRAIDCAST_ERROR_ARGUMENT);
    assert(braidcast_recv(it, 5, &message) == BRAIDCAST_ERROR_NO_CONNECTION);
    assert(braidcast_join(it, 5, NULL) == BRAIDCAST_ERROR_ARGUMENT);
    assert(braidcast_leave(it, 5, "wlan0") == BRAIDCAST_ERROR_NO_CONNECTION);
    assert(braidcast_shutdown(it, 5) == BRAIDCAST_ERROR_NO_CONNECTION);
    assert(braidcast_abort(it, 5, 0, NULL) == BRAIDCAST_ERROR_NO_CONNECTION);

    path.remote = "home.example";
    assert(braidcast_connect(it, &path, 1, &connection) == BRAIDCAST_ERROR_ARGUMENT);
    SAYS("'home.example' is not HOST:PORT");
    char fingerprint[BRAIDCAST_FINGERPRINT_SIZE];
    assert(braidcast_peer(it, 5, fingerprint) == BRAIDCAST_ERROR_NO_CONNECTION);
    assert(braidcast_peer(it, 5, NULL) == BRAIDCAST_ERROR_ARGUMENT);
    assert(braidcast_set_authorized(it, nobody, 1) == BRAIDCAST_ERROR_KEY);
    SAYS("'nobody' is not a fingerprint");
    assert(braidcast_set_authorized(it, NULL, 0) == BRAIDCAST_ERROR_KEY);
    SAYS("without an identity");
    path.remote = "127.0.0.1:9";
    assert(braidcast_connect(it, &path, 1, &connection) == BRAIDCAST_OK);
    assert(braidcast_send(it, connection, "", 0, NULL) == BRAIDCAST_ERROR_SEND);
    SAYS("at least one byte");
    static uint8_t much[1 << 16];
    int code = BRAIDCAST_OK;
    for (int i = 0; i < 10000 && code == BRAIDCAST_OK; i++)
        code = braidcast_send(it, connection, much, sizeof much, NULL);
    assert(code == BRAIDCAST_ERROR_FULL);
    assert(braidcast_abort(it, connection, 0, "enough") == BRAIDCAST_OK);
    assert(braidcast_poll(it, 1000, &event) == 1 && event.kind == BRAIDCAST_CLOSED && strstr(event.text, "aborted"));
    assert(event.reason == BRAIDCAST_REASON_ABORTED && event.unsettled_count > 10 && event.unsettled[0] == 0);
    assert(braidcast_send(it, connection, much, 1, NULL) == BRAIDCAST_ERROR_NO_CONNECTION);

    braidcast_socket_free(it);
    braidcast_socket_free(NULL);
    return 0;
}
