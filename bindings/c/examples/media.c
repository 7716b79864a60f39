/* A transport stream over two paths of this machine: a camera sends it, and a screen takes it apart.
 *
 *   cc media.c -lbraidcast -lpthread -o media
 *   ffmpeg -re -f lavfi -i testsrc2=size=640x360:rate=25 -t 5 -c:v libx264 -tune zerolatency -f mpegts - | ./media */
#include <braidcast.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void must(int code, const char *what)
{
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", what, braidcast_last_error());
        exit(1);
    }
}

/* Sends what comes from stdin, and says how much was on time. */
static void *camera(void *sender)
{
    braidcast_media_event event = BRAIDCAST_INIT(braidcast_media_event);
    while (event.kind != BRAIDCAST_MEDIA_CONNECTED)
        must(braidcast_media_poll(sender, 20000, &event) - 1, "no receiver");
    uint8_t data[65536];
    ssize_t len;
    while ((len = read(0, data, sizeof data)) > 0)
        must(braidcast_media_write(sender, data, len), "write");
    int complete = braidcast_media_finish(sender, 10000);
    must(complete, "finish");
    braidcast_media_report report = BRAIDCAST_INIT(braidcast_media_report);
    must(braidcast_media_report_now(sender, 0, &report), "report");
    printf("all arrived: %s; %llu of %llu on time\n", complete ? "yes" : "no", (unsigned long long)report.on_time,
           (unsigned long long)report.captured);
    return NULL;
}

int main(void)
{
    braidcast_config config = BRAIDCAST_INIT(braidcast_config);
    config.key = "a passphrase that both ends know";
    braidcast_media_options options = BRAIDCAST_INIT(braidcast_media_options);
    options.units = 1;
    const char *addresses[] = {"127.0.0.1:0", "127.0.0.1:0"};
    braidcast_media *screen = braidcast_media_receive_at(&config, &options, addresses, 2);
    must(screen ? 0 : -1, "receiver");

    char remote[2][32];
    braidcast_path paths[2];
    for (int i = 0; i < 2; i++) {
        /* In the field: {"192.0.2.1:9000", "wlan0"}. */
        snprintf(remote[i], sizeof remote[i], "127.0.0.1:%d", braidcast_media_port(screen, i));
        paths[i] = (braidcast_path)BRAIDCAST_PATH(remote[i], NULL);
    }
    options.name = "camera";
    options.latency_ms = 2000;
    braidcast_media *sender = braidcast_media_send_to(&config, &options, paths, 2);
    must(sender ? 0 : -1, "sender");
    pthread_t thread;
    pthread_create(&thread, NULL, camera, sender);

    int frames = 0, keys = 0;
    braidcast_media_event event = BRAIDCAST_INIT(braidcast_media_event);
    while (braidcast_media_poll(screen, 20000, &event) == 1 && event.kind != BRAIDCAST_MEDIA_ENDED) {
        if (event.kind == BRAIDCAST_MEDIA_CONNECTED)
            printf("%s is there\n", event.text);
        if (event.kind == BRAIDCAST_MEDIA_UNIT && event.unit->coding == BRAIDCAST_CODING_H264) {
            frames++;
            keys += event.unit->key;
        }
    }
    pthread_join(thread, NULL);
    printf("%d frames, %d of them keys\n", frames, keys);
    braidcast_media_free(sender);
    braidcast_media_free(screen);
    return 0;
}
