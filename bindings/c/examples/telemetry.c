/* A vehicle: 50 messages a second that are worth nothing after 200 ms, a file beside them that goes on where it
 * stopped, commands back, and a new connection whenever one ends. All of it stands in one poll(2) loop.
 *
 *   cc telemetry.c -lbraidcast -o telemetry
 *   ./telemetry IDENTITY SERVER_FINGERPRINT SECONDS FILE HOST:PORT[@INTERFACE]... */
#define _DEFAULT_SOURCE
#include <braidcast.h>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TELEMETRY = 1, FILE_CHUNK = 2, ACK = 3, COMMAND = 4, BEGIN = 5, CHUNK = 16384 };

static braidcast_socket *vehicle;
static uint64_t connection, file_size, file_sent;
static int begun, file_goes, file;
static unsigned sent, discarded, missed;
static const char *file_name;

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
    uint64_t body[] = {htobe64(++number), htobe64(now_us(CLOCK_REALTIME))};
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
    size_t waiting = 0;
    braidcast_send_options how = {.size = sizeof how, .stream = 2, .priority = -3, .ppid = FILE_CHUNK};
    while (file_goes && braidcast_buffered(vehicle, connection, &waiting) == 0 && waiting < 65536) {
        struct { uint64_t at; uint8_t data[CHUNK]; } body = {.at = htobe64(file_sent)};
        ssize_t len = pread(file, body.data, CHUNK, (off_t)file_sent);
        if (len <= 0 || braidcast_send(vehicle, connection, &body, 8 + (size_t)len, &how) < 0)
            return;
        file_sent += (uint64_t)len;
    }
}

static void happened(const braidcast_event *event)
{
    static braidcast_message message = BRAIDCAST_INIT(braidcast_message);
    struct { uint64_t size; char name[256]; } body = {.size = htobe64(file_size)};
    braidcast_send_options how = {.size = sizeof how, .stream = 2, .ppid = BEGIN};
    switch (event->kind) {
    case BRAIDCAST_CONNECTED:
        strncpy(body.name, file_name, sizeof body.name - 1);
        braidcast_send(vehicle, connection, &body, 8 + strlen(body.name), &how);
        break;
    case BRAIDCAST_READABLE:
        while (braidcast_recv(vehicle, connection, &message) == 1) {
            if (message.ppid == COMMAND)
                printf("command: %.*s\n", (int)message.len, (const char *)message.data);
            if (message.ppid != ACK || message.len != 8)
                continue;
            uint64_t there;
            memcpy(&there, message.data, 8);
            printf("the server has %lu of %lu bytes\n", (unsigned long)be64toh(there), (unsigned long)file_size);
            if (!file_goes++)
                file_sent = be64toh(there);
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
    if (argc < 6 || (file = open(file_name = argv[4], O_RDONLY)) < 0)
        return fprintf(stderr, "telemetry IDENTITY SERVER_FINGERPRINT SECONDS FILE HOST:PORT[@INTERFACE]...\n"), 2;
    file_size = (uint64_t)lseek(file, 0, SEEK_END);
    setvbuf(stdout, NULL, _IOLBF, 0);
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
    return close(file);
}
