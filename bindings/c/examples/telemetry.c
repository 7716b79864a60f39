/* A vehicle: 50 messages a second that are worth nothing after 200 ms, a file beside them that goes on where it
 * stopped, commands back, and a new connection whenever one ends. All of it stands in one poll(2) loop.
 *
 *   cc telemetry.c -lbraidcast -o telemetry
 *   ./telemetry IDENTITY SERVER_FINGERPRINT SECONDS FILE HOST:PORT[@INTERFACE]... */
#include <braidcast.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TELEMETRY = 1, FILE_CHUNK = 2, ACK = 3, COMMAND = 4, BEGIN = 5, CHUNK = 16384 };

static braidcast_socket *vehicle;
static uint64_t connection, file_size, file_sent;
static int begun, file_goes;
static unsigned sent, discarded, missed;
static uint8_t *file;
static const char *file_name;

static void put64(uint8_t *at, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(number >> (56 - 8 * i));
}

static uint64_t now_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Sends the next measurement, and once a second prints how it goes. */
static void tick(void)
{
    static uint64_t number;
    uint8_t body[16];
    put64(body, ++number);
    put64(body + 8, now_us(CLOCK_REALTIME));
    braidcast_send_options how = {.size = sizeof how, .stream = 1, .unordered = 1, .deadline_ms = 200, .ppid = TELEMETRY};
    if (file_goes && braidcast_send(vehicle, connection, body, sizeof body, &how) == BRAIDCAST_OK)
        sent++;
    else
        missed++;
    if (number % 50)
        return;
    printf("%u sent, %u discarded, %u without connection\n", sent, discarded, missed);
    braidcast_path_report paths[8] = {BRAIDCAST_INIT(braidcast_path_report)};
    int count = begun ? braidcast_paths(vehicle, connection, paths, 8) : 0;
    for (int i = 0; i < count && i < 8; i++)
        printf("  %s state %d, %.1f ms, %lu lost\n", paths[i].name, paths[i].state, paths[i].rtt_ms, (unsigned long)paths[i].lost_chunks);
}

/* Keeps a little of the file under way; telemetry goes first. */
static void feed(void)
{
    static uint8_t body[8 + CHUNK];
    size_t waiting = 0;
    braidcast_send_options how = {.size = sizeof how, .stream = 2, .priority = -3, .ppid = FILE_CHUNK};
    while (file_goes && file_sent < file_size && braidcast_buffered(vehicle, connection, &waiting) == 0 && waiting < 65536) {
        size_t len = file_size - file_sent < CHUNK ? file_size - file_sent : CHUNK;
        put64(body, file_sent);
        memcpy(body + 8, file + file_sent, len);
        if (braidcast_send(vehicle, connection, body, 8 + len, &how) < 0)
            return;
        file_sent += len;
    }
}

static void happened(const braidcast_event *event)
{
    static braidcast_message message = BRAIDCAST_INIT(braidcast_message);
    uint8_t body[8 + 256];
    braidcast_send_options how = {.size = sizeof how, .stream = 2, .ppid = BEGIN};
    switch (event->kind) {
    case BRAIDCAST_CONNECTED:
        put64(body, file_size);
        memcpy(body + 8, file_name, strnlen(file_name, 256));
        braidcast_send(vehicle, connection, body, 8 + strnlen(file_name, 256), &how);
        break;
    case BRAIDCAST_READABLE:
        while (braidcast_recv(vehicle, connection, &message) == 1) {
            if (message.ppid == COMMAND)
                printf("command: %.*s\n", (int)message.len, (const char *)message.data);
            if (message.ppid != ACK || message.len != 8)
                continue;
            uint64_t there = 0;
            for (int i = 0; i < 8; i++)
                there = there << 8 | message.data[i];
            printf("the server has %lu of %lu bytes\n", (unsigned long)there, (unsigned long)file_size);
            if (!file_goes++)
                file_sent = there;
        }
        break;
    case BRAIDCAST_DISCARDED: discarded++; break;
    case BRAIDCAST_PATH_DOWN: printf("%s is down\n", event->text); break;
    case BRAIDCAST_CLOSED:
        printf("closed: reason %d, code %u: %s\n", event->reason, event->code, event->text);
        begun = file_goes = 0;
        break;
    }
}

int main(int argc, char **argv)
{
    FILE *in = argc < 6 ? NULL : fopen(file_name = argv[4], "rb");
    if (!in || !(file = malloc(1 << 24)))
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    file_size = fread(file, 1, 1 << 24, in);
    braidcast_config config = {.size = sizeof config, .identity = argv[1], .longest_silence_ms = 3000};
    config.authorized = (const char *const *)&argv[2];
    config.authorized_count = 1;
    if (!(vehicle = braidcast_socket_new_config(&config)))
        return fprintf(stderr, "%s\n", braidcast_last_error()), 1;
    braidcast_path paths[8];
    size_t count = 0;
    for (; count < 8 && argv[5 + count]; count++)
        paths[count] = (braidcast_path)BRAIDCAST_PATH(argv[5 + count], NULL);
    uint64_t due = now_us(CLOCK_MONOTONIC), retry = due, end = due + strtoull(argv[3], NULL, 10) * 1000000;
    braidcast_event event = BRAIDCAST_INIT(braidcast_event);
    for (uint64_t now = due; now < end; now = now_us(CLOCK_MONOTONIC)) {
        if (!begun && now >= retry) {
            retry = now + 500000;
            if (!(begun = braidcast_connect(vehicle, paths, count, &connection) == BRAIDCAST_OK))
                fprintf(stderr, "connect: %s\n", braidcast_last_error());
        }
        for (; due <= now; due += 20000)
            tick();
        feed();
        int code;
        while ((code = braidcast_poll(vehicle, 0, &event)) == 1)
            happened(&event);
        if (code < 0)
            return fprintf(stderr, "%s\n", braidcast_last_error()), 1;
        struct pollfd ready = {braidcast_fd(vehicle), POLLIN, 0};
        poll(&ready, 1, 20);
    }
    printf("ended in good order: %d\n", braidcast_close(vehicle, 5000));
    braidcast_socket_free(vehicle);
    free(file);
    return fclose(in);
}
