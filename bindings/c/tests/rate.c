/* A program sends frames as large as they may be over this machine, which carries more than it is
 * able to make: it is told more and more, up to its greatest rate. Both ends stand in one program. */
#include <assert.h>
#include <braidcast.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SAYS(words) (assert(strstr(braidcast_last_error(), words) || !fprintf(stderr, "%s\n", braidcast_last_error())))

int main(void)
{
    braidcast_socket *server = braidcast_socket_new(NULL, 0), *client = braidcast_socket_new(NULL, 0);
    uint16_t port;
    char remote[32];
    assert(server && client && braidcast_bind(server, "127.0.0.1:0", &port) == BRAIDCAST_OK);
    assert(braidcast_listen(server) == BRAIDCAST_OK);
    snprintf(remote, sizeof remote, "127.0.0.1:%u", port);
    braidcast_path path = BRAIDCAST_PATH(remote, NULL);
    uint64_t connection;
    assert(braidcast_connect(client, &path, 1, &connection) == BRAIDCAST_OK);

    braidcast_rate rate = BRAIDCAST_INIT(braidcast_rate);
    braidcast_rate_options options = {.size = sizeof options, .least = 500000, .greatest = 4000000, .interval_ms = 20};
    assert(braidcast_follow_rate(NULL, connection, NULL) == BRAIDCAST_ERROR_ARGUMENT);
    assert(braidcast_follow_rate(client, 77, NULL) == BRAIDCAST_ERROR_NO_CONNECTION);
    assert(braidcast_rate_report(client, 77, &rate) == BRAIDCAST_ERROR_NO_CONNECTION);
    assert(braidcast_rate_report(client, connection, NULL) == BRAIDCAST_ERROR_ARGUMENT);
    assert(braidcast_set_rate_limits(client, connection, 2000, 1000) == BRAIDCAST_ERROR_ARGUMENT);
    SAYS("the least rate, 2000 bit/s, is more than the greatest, 1000");
    assert(braidcast_follow_rate(client, connection, &options) == BRAIDCAST_OK);
    assert(braidcast_rate_report(client, connection, &rate) == 0);

    static uint8_t picture[100000];
    braidcast_event event = BRAIDCAST_INIT(braidcast_event);
    braidcast_message message = BRAIDCAST_INIT(braidcast_message);
    const struct timespec interval = {0, 20000000};
    size_t received = 0, pictures = 0;
    rate.rate = 0;
    for (int i = 0; i < 500 && (rate.rate < 4e6 || pictures < 25); i++) {
        for (int n = 0; n < 2; n++)
            while (braidcast_poll(n ? server : client, 0, &event) == 1)
                if (n && event.kind == BRAIDCAST_READABLE)
                    while (braidcast_recv(server, event.connection, &message) == 1)
                        received += message.len;
        if (braidcast_rate_report(client, connection, &rate) == 1) {
            assert(rate.rate >= 5e5 && rate.rate <= 4e6 && rate.smoothed_rate > 0 && rate.frame_interval_ms == 20);
            assert(rate.next_frame_bits / 8 < sizeof picture && !rate.below_least);
            braidcast_send_options how = {.size = sizeof how, .deadline_ms = 250};
            if (rate.next_frame_bits > 0) {
                assert(braidcast_send(client, connection, picture, rate.next_frame_bits / 8, &how) == BRAIDCAST_OK);
                pictures++;
            }
        }
        nanosleep(&interval, NULL);
    }
    if (rate.rate != 4e6 || received < 50000)
        fprintf(stderr, "%.0f bit/s after %zu frames, %zu bytes\n", rate.rate, pictures, received);
    assert(rate.rate == 4e6 && received >= 50000);
    assert(braidcast_set_rate_limits(client, connection, 0, 600000) == BRAIDCAST_OK);
    assert(braidcast_rate_report(client, connection, &rate) == 1 && rate.rate == 6e5);

    braidcast_socket_free(client);
    braidcast_socket_free(server);
    return 0;
}
