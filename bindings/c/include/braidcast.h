/* Braidcast for C: messages over several networks at once, encrypted, over UDP.
 *
 * Link with -lbraidcast. See docs/start/c.md for a program. Made from bindings/c/src by cbindgen: do not edit. */

#ifndef BRAIDCAST_H
#define BRAIDCAST_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// It was done.
#define BRAIDCAST_OK 0

// An argument cannot be: a null pointer, text that is not UTF-8, an address that is none.
#define BRAIDCAST_ERROR_ARGUMENT -1

// There is no such connection, or it is over.
#define BRAIDCAST_ERROR_NO_CONNECTION -2

// The send buffer is full: wait for BRAIDCAST_WRITABLE.
#define BRAIDCAST_ERROR_FULL -3

// The message was not taken for another reason: it is empty or too long, or the connection is closing.
#define BRAIDCAST_ERROR_SEND -4

// A local address, an interface or a path cannot be used.
#define BRAIDCAST_ERROR_PATH -5

// The key cannot be used.
#define BRAIDCAST_ERROR_KEY -6

// A system call failed.
#define BRAIDCAST_ERROR_SYSTEM -7

// A bug in the library; the handle may only be freed.
#define BRAIDCAST_ERROR_PANIC -8

// For braidcast_socket_new: nothing is encrypted; the other end must do the same.
#define BRAIDCAST_PLAIN 1

// The handshake is done.
#define BRAIDCAST_CONNECTED 1

// There are messages to receive where there were none.
#define BRAIDCAST_READABLE 2

// There is room to send again after BRAIDCAST_ERROR_FULL.
#define BRAIDCAST_WRITABLE 3

// A path carries data; `text` is its name.
#define BRAIDCAST_PATH_UP 4

// A path no longer answers; `text` is its name.
#define BRAIDCAST_PATH_DOWN 5

// A message was discarded, too late or repeated too often; `context` is what it was sent with.
#define BRAIDCAST_DISCARDED 6

// The connection is over; `text` says why.
#define BRAIDCAST_CLOSED 7

// A socket for messages over several networks at once. One thread at a time may use it.
typedef struct braidcast_socket braidcast_socket;

// A path: where it leads, and what it leaves through.
typedef struct braidcast_path {
  // Address and port of the other end, for example "192.0.2.1:9000" or "[2001:db8::1]:9000".
  const char *remote;
  // The interface ("wlan0") or local address that it leaves through; NULL: as the routing table has it.
  const char *via;
} braidcast_path;

// How to send a message. All zero is the default: in order on stream 0, delivered however long it takes.
typedef struct braidcast_send_options {
  // Messages of a stream are in order; 0 to 63.
  uint16_t stream;
  // Not 0: deliver it as soon as it is complete, whatever its stream waits for.
  uint8_t unordered;
  // In how many milliseconds it must be at the other end; later it is discarded. 0: it is never too late.
  uint32_t deadline_ms;
  // The kind of message, for the other end's application.
  uint32_t ppid;
  // Comes back in the event BRAIDCAST_DISCARDED.
  uint64_t context;
} braidcast_send_options;

// A message that was received.
typedef struct braidcast_message {
  // Its bytes, until the next call of braidcast_recv or braidcast_socket_free with this socket.
  const uint8_t *data;
  // How many.
  size_t len;
  // The stream it came on.
  uint16_t stream;
  // What the sender said of its kind.
  uint32_t ppid;
} braidcast_message;

// What happened to a connection.
typedef struct braidcast_event {
  // Which one.
  uint64_t connection;
  // BRAIDCAST_CONNECTED and so on.
  int kind;
  // Of BRAIDCAST_DISCARDED.
  uint64_t context;
  // A name or a reason, else "". Until the next call of braidcast_poll or braidcast_socket_free with this socket.
  const char *text;
} braidcast_event;

// What is to be reckoned with. All zero is the default.
typedef struct braidcast_rate_options {
  // The least rate that the program is able to make, bit/s. 0: 100,000.
  uint64_t least;
  // The greatest, bit/s; no more is ever asked for. 0: 50,000,000.
  uint64_t greatest;
  // How many milliseconds after it was sent a message has to be at the other end. 0: 500.
  uint32_t latency_ms;
  // Interval of frames, in milliseconds, 4 to 1,000. 0: the times of messages show it, if each
  // frame is one message or leaves at once.
  uint32_t interval_ms;
} braidcast_rate_options;

// What a program may send now.
typedef struct braidcast_rate {
  // Bits that the next message, or frame, may have to come in time with what waits before it. 0:
  // leave it out.
  uint64_t next_frame_bits;
  // What will hold for the next second, bit/s: for encoders.
  double rate;
  // The same, smoothed over two seconds: for people, and encoders that are slow to change.
  double smoothed_rate;
  // Milliseconds that all that waits, here and in queues of the network, would take to arrive.
  double waiting_ms;
  // Interval of frames, in milliseconds.
  double frame_interval_ms;
  // Frames of which nothing has left yet.
  uint32_t waiting_frames;
  // Not 0: no path was full in the last ten seconds. More may be possible, and is asked for as soon as this is used.
  uint8_t is_floor;
  // Not 0: the paths carry less than the program's minimum rate.
  uint8_t below_least;
} braidcast_rate;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes a socket. With a `key`, which both ends share, only who has it gets in; NULL: encrypted,
// with anybody. `flags`: 0, or BRAIDCAST_PLAIN. Returns NULL on failure; braidcast_last_error says
// why. Free it with braidcast_socket_free.
//
// # Safety
// `key` is NULL or ends with a zero byte.
struct braidcast_socket *braidcast_socket_new(const char *key,
                                              uint32_t flags);

// Frees a socket; NULL does nothing. Connections that were not shut down just fall silent.
//
// # Safety
// `socket` is NULL or of braidcast_socket_new, and not used again.
void braidcast_socket_free(struct braidcast_socket *socket);

// A file descriptor that is readable when braidcast_poll has something to do. Do not close it.
// After it became readable, and after everything that was sent, call braidcast_poll with timeout 0
// until that returns 0.
//
// # Safety
// `socket` is of braidcast_socket_new.
int braidcast_fd(const struct braidcast_socket *socket);

// Opens the local address `address`, for example "0.0.0.0:9000"; port 0 takes any that is free.
// Writes the port to `port` unless that is NULL.
//
// # Safety
// `socket` is of braidcast_socket_new, `address` ends with a zero byte, `port` is NULL or can be written.
int braidcast_bind(struct braidcast_socket *socket,
                   const char *address,
                   uint16_t *port);

// Accepts connections from now on; each begins with the event BRAIDCAST_CONNECTED.
//
// # Safety
// `socket` is of braidcast_socket_new.
int braidcast_listen(struct braidcast_socket *socket);

// Begins a connection over `count` paths and writes its number to `connection`.
// BRAIDCAST_CONNECTED or BRAIDCAST_CLOSED follows.
//
// # Safety
// `socket` is of braidcast_socket_new; `paths` are `count`, with texts that end with a zero byte;
// `connection` can be written.
int braidcast_connect(struct braidcast_socket *socket,
                      const struct braidcast_path *paths,
                      size_t count,
                      uint64_t *connection);

// Adds a path to a connection that was begun here. One whose interface is not there joins when that appears.
//
// # Safety
// `socket` is of braidcast_socket_new; `path` is one, with texts that end with a zero byte.
int braidcast_join(struct braidcast_socket *socket,
                   uint64_t connection,
                   const struct braidcast_path *path);

// Takes the path called `name` out: its interface or local address, or else the address that it
// leads to. Returns 1, or 0 if there is none.
//
// # Safety
// `socket` is of braidcast_socket_new; `name` ends with a zero byte.
int braidcast_leave(struct braidcast_socket *socket,
                    uint64_t connection,
                    const char *name);

// Takes a message of `len` bytes to be sent; it is copied. It leaves in the next braidcast_poll,
// or when the paths have room.
//
// # Safety
// `socket` is of braidcast_socket_new, `data` has `len` bytes, `options` is NULL or one.
int braidcast_send(struct braidcast_socket *socket,
                   uint64_t connection,
                   const uint8_t *data,
                   size_t len,
                   const struct braidcast_send_options *options);

// The next message of a connection, into `message`. Returns 1, or 0 if there is none now.
//
// # Safety
// `socket` is of braidcast_socket_new; `message` can be written.
int braidcast_recv(struct braidcast_socket *socket,
                   uint64_t connection,
                   struct braidcast_message *message);

// Waits for an event for at most `timeout_ms` milliseconds, or for ever if that is below 0;
// meanwhile everything runs. Returns 1 with `event`, or 0 if nothing happened in that time.
//
// # Safety
// `socket` is of braidcast_socket_new; `event` can be written.
int braidcast_poll(struct braidcast_socket *socket,
                   int timeout_ms,
                   struct braidcast_event *event);

// Ends a connection once everything that was sent is delivered. BRAIDCAST_CLOSED follows.
//
// # Safety
// `socket` is of braidcast_socket_new.
int braidcast_shutdown(struct braidcast_socket *socket, uint64_t connection);

// Ends a connection at once; the other end is told `reason`, which may be NULL. BRAIDCAST_CLOSED follows.
//
// # Safety
// `socket` is of braidcast_socket_new; `reason` is NULL or ends with a zero byte.
int braidcast_abort(struct braidcast_socket *socket,
                    uint64_t connection,
                    const char *reason);

// What went wrong in this thread's last call that failed, in words; "" if none did. Until the next call that fails.
const char *braidcast_last_error(void);

// Says from now on what messages of a connection may have, in braidcast_rate_report. `options`
// NULL: the default. Called again, it begins anew.
//
// # Safety
// `socket` is of braidcast_socket_new; `options` is NULL or one.
int braidcast_follow_rate(struct braidcast_socket *socket,
                          uint64_t connection,
                          const struct braidcast_rate_options *options);

// Other rates that the program is able to make, bit/s, each as in braidcast_rate_options. What is
// known of the paths stays.
//
// # Safety
// `socket` is of braidcast_socket_new.
int braidcast_set_rate_limits(struct braidcast_socket *socket,
                              uint64_t connection,
                              uint64_t least,
                              uint64_t greatest);

// How much the next message of a connection may have, and which rate will hold for the next
// second, into `rate`. Ask before each message. While no path is full the rate grows only as far
// as it is used. Returns 1, or 0 before braidcast_follow_rate and while the connection is not up.
//
// # Safety
// `socket` is of braidcast_socket_new; `rate` can be written.
int braidcast_rate_report(struct braidcast_socket *socket,
                          uint64_t connection,
                          struct braidcast_rate *rate);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BRAIDCAST_H */
