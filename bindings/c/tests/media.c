/* Access units go over, and wrong uses of live media get an error with words. */
#include <assert.h>
#include <braidcast.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static braidcast_media_event event = BRAIDCAST_INIT(braidcast_media_event);

static void wait_for(braidcast_media *media, int kind)
{
    do
        assert(braidcast_media_poll(media, 20000, &event) == 1);
    while (event.kind != kind);
}

static void refused(int code, int expected, const char *words)
{
    if (code != expected || !strstr(braidcast_last_error(), words)) {
        fprintf(stderr, "%d: %s\n", code, braidcast_last_error());
        assert(0);
    }
}

int main(void)
{
    braidcast_config config = BRAIDCAST_INIT(braidcast_config);
    config.key = "a passphrase that both ends know";
    braidcast_media_options options = BRAIDCAST_INIT(braidcast_media_options);
    options.units = 1;
    const char *address = "127.0.0.1:0";
    braidcast_media *receiver = braidcast_media_receive_at(&config, &options, &address, 1);
    assert(receiver && braidcast_media_port(receiver, 0) > 0);
    refused(braidcast_media_port(receiver, 1), BRAIDCAST_ERROR_ARGUMENT, "no address number 1");
    assert(braidcast_media_poll(receiver, 0, &event) == 0);
    braidcast_media_interrupt(receiver);
    assert(braidcast_media_poll(receiver, -1, &event) == 0);

    char remote[32];
    snprintf(remote, sizeof remote, "127.0.0.1:%d", braidcast_media_port(receiver, 0));
    braidcast_path path = BRAIDCAST_PATH(remote, NULL);
    options.name = "door";
    options.latency_ms = 3000;
    braidcast_media *sender = braidcast_media_send_to(&config, &options, &path, 1);
    assert(sender);
    int video = braidcast_media_add_track(sender, BRAIDCAST_CODING_H264, 0);
    int audio = braidcast_media_add_track(sender, BRAIDCAST_CODING_OPUS, 2);
    assert(video > 0 && audio > video);
    wait_for(sender, BRAIDCAST_MEDIA_CONNECTED);
    wait_for(receiver, BRAIDCAST_MEDIA_CONNECTED);
    assert(!strcmp(event.text, "door") && event.unit == NULL);
    uint32_t stream = event.stream;

    static const uint8_t slice[] = {0, 0, 0, 1, 0x65, 0x88, 0x84};
    braidcast_media_unit unit = BRAIDCAST_INIT(braidcast_media_unit);
    unit.track = video, unit.data = slice, unit.len = sizeof slice, unit.key = 1;
    unit.pts_us = 2500000, unit.dts_us = 2000000, unit.has_dts = 1;
    assert(braidcast_media_send(sender, &unit) == BRAIDCAST_OK);
    struct pollfd ready = {braidcast_media_fd(receiver), POLLIN, 0};
    assert(poll(&ready, 1, 20000) == 1);
    wait_for(receiver, BRAIDCAST_MEDIA_UNIT);
    const braidcast_media_unit *came = event.unit;
    assert(came->len == sizeof slice + 6 && !memcmp(came->data + 6, slice, sizeof slice));
    assert(came->key && came->whole && came->coding == BRAIDCAST_CODING_H264 && came->track == video);
    assert(came->pts_us == 3500000 && came->dts_us == 3000000 && came->has_dts);

    unit.track = audio, unit.has_dts = 0;
    assert(braidcast_media_send(sender, &unit) == BRAIDCAST_OK);
    wait_for(receiver, BRAIDCAST_MEDIA_UNIT);
    assert(event.unit->channels == 2 && event.unit->coding == BRAIDCAST_CODING_OPUS && event.unit->len == sizeof slice);

    braidcast_rate rate = BRAIDCAST_INIT(braidcast_rate);
    assert(braidcast_media_rate(sender, &rate) == BRAIDCAST_OK && rate.rate > 0);
    braidcast_path_report paths[2] = {BRAIDCAST_INIT(braidcast_path_report), BRAIDCAST_INIT(braidcast_path_report)};
    assert(braidcast_media_paths(sender, 0, paths, 2) == 1 && paths[0].state == BRAIDCAST_PATH_ACTIVE);

    refused(braidcast_media_write(sender, slice, sizeof slice), BRAIDCAST_ERROR_SEND, "takes access units");
    refused(braidcast_media_write(receiver, slice, sizeof slice), BRAIDCAST_ERROR_ARGUMENT, "a receiver sends nothing");
    refused(braidcast_media_add_track(sender, 99, 0), BRAIDCAST_ERROR_ARGUMENT, "coding 99");
    refused(braidcast_media_add_track(sender, BRAIDCAST_CODING_OPUS, 0), BRAIDCAST_ERROR_ARGUMENT, "channels");
    unit.track = 7;
    refused(braidcast_media_send(sender, &unit), BRAIDCAST_ERROR_ARGUMENT, "no track 7");
    unit.track = video, unit.data = slice + 3, unit.len = sizeof slice - 3;
    refused(braidcast_media_send(sender, &unit), BRAIDCAST_ERROR_SEND, "start code");
    refused(braidcast_media_send(sender, NULL), BRAIDCAST_ERROR_ARGUMENT, "null");
    braidcast_media_event small = {0};
    refused(braidcast_media_poll(sender, 0, &small), BRAIDCAST_ERROR_ARGUMENT, "braidcast_media_event");
    options.name = "a/b";
    assert(!braidcast_media_send_to(&config, &options, &path, 1) && strstr(braidcast_last_error(), "'/'"));
    assert(!braidcast_media_send_at(&config, NULL, NULL, 0) && strstr(braidcast_last_error(), "no addresses"));
    options.name = "door", options.streams = 2;
    assert(!braidcast_media_receive_from(&config, &options, &path, 1));

    assert(braidcast_media_finish(sender, 20000) == 1);
    wait_for(sender, BRAIDCAST_MEDIA_ENDED);
    assert(event.complete && event.reason == BRAIDCAST_REASON_SHUTDOWN);
    assert(braidcast_media_poll(sender, -1, &event) == BRAIDCAST_ERROR_NO_CONNECTION);
    wait_for(receiver, BRAIDCAST_MEDIA_ENDED);
    assert(event.complete && event.stream == stream);
    braidcast_media_report report = BRAIDCAST_INIT(braidcast_media_report);
    assert(braidcast_media_report_now(sender, 0, &report) == BRAIDCAST_OK);
    assert(report.captured >= 3 && report.on_time == report.captured);
    braidcast_media_free(sender);
    braidcast_media_free(receiver);
    braidcast_media_free(NULL);
    return 0;
}
