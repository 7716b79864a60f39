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

/* Initialisers: braidcast_event event = BRAIDCAST_INIT(braidcast_event); */
#ifdef __cplusplus
#define BRAIDCAST_INIT(type) ([] { type it{}; it.size = sizeof(type); return it; }())
#define BRAIDCAST_PATH(to, through) {sizeof(braidcast_path), (to), (through)}
#else
#define BRAIDCAST_INIT(type) {.size = sizeof(type)}
/* A path to the address `to` that leaves through an interface or local address, or NULL. */
#define BRAIDCAST_PATH(to, through) {.size = sizeof(braidcast_path), .remote = (to), .via = (through)}
#endif

// Live data: quick acknowledgements and timers, short queues.
#define BRAIDCAST_PROFILE_LIVE 0

// As much as the paths carry; a dead path is noticed after seconds.
#define BRAIDCAST_PROFILE_BULK 1

// Few data that matter at once: what would miss its deadline goes over a second path too.
#define BRAIDCAST_PROFILE_VOICE 2

// Bytes of a fingerprint in text, with the zero byte behind it.
#define BRAIDCAST_FINGERPRINT_SIZE 65

// H.264 with start codes.
#define BRAIDCAST_CODING_H264 1

// H.265 with start codes.
#define BRAIDCAST_CODING_H265 2

// AAC, each frame with its ADTS header.
#define BRAIDCAST_CODING_AAC 3

// MPEG audio.
#define BRAIDCAST_CODING_MPEG_AUDIO 4

// AC-3.
#define BRAIDCAST_CODING_AC3 5

// Opus; braidcast_media_add_track takes the number of channels.
#define BRAIDCAST_CODING_OPUS 6

// And the stream_type of ISO/IEC 13818-1, table 2-34, by a bitwise or: anything else.
#define BRAIDCAST_CODING_OTHER 256

// Sender: a receiver takes the stream from here on. Receiver: a sender is there; `text` is the
// name of its stream.
#define BRAIDCAST_MEDIA_CONNECTED 1

// The other end is gone, and is waited for; `reason` and `text` say why.
#define BRAIDCAST_MEDIA_LOST 2

// Receiver: the sender is back; its stream goes on.
#define BRAIDCAST_MEDIA_BACK 3

// Receiver: another sender, or the same one started anew, took the place of a silent one.
#define BRAIDCAST_MEDIA_RESTARTED 4

// Receiver: the sender's clock jumped; the playout follows it.
#define BRAIDCAST_MEDIA_CLOCK_JUMPED 5

// Sender: another stream is being received; this one has its turn after it.
#define BRAIDCAST_MEDIA_IN_LINE 6

// A path carries data; `text` is its name.
#define BRAIDCAST_MEDIA_PATH_UP 7

// A path no longer answers; `text` is its name.
#define BRAIDCAST_MEDIA_PATH_DOWN 8

// Somebody was turned away; `text` says why.
#define BRAIDCAST_MEDIA_REFUSED 9

// Something did not go as asked; `text` says what.
#define BRAIDCAST_MEDIA_WARNING 10

// Receiver: bytes of a stream are due, in `data`.
#define BRAIDCAST_MEDIA_BYTES 11

// Receiver: an access unit of a stream is due, in `unit`.
#define BRAIDCAST_MEDIA_UNIT 12

// It is over; `complete`, `reason` and `text` say how. After that of a sender, and after
// braidcast_media_stop, braidcast_media_poll returns BRAIDCAST_ERROR_NO_CONNECTION.
#define BRAIDCAST_MEDIA_ENDED 13

// The path is asked whether it leads to the other end.
#define BRAIDCAST_PATH_UNCONFIRMED 0

// It carries data.
#define BRAIDCAST_PATH_ACTIVE 1

// It missed an answer; data goes over the others.
#define BRAIDCAST_PATH_POTENTIALLY_FAILED 2

// It does not answer.
#define BRAIDCAST_PATH_INACTIVE 3

// Bytes of a name or address in braidcast_path_report, with the zero byte behind it.
#define BRAIDCAST_NAME_SIZE 64

// Version of this header: major << 16, minor << 8, patch. braidcast_version() returns that of the
// library.
#define BRAIDCAST_VERSION 256

// It was done.
#define BRAIDCAST_OK 0

// An argument cannot be: a null pointer, text that is not UTF-8, an address that is none.
#define BRAIDCAST_ERROR_ARGUMENT -1

// There is no such connection, or it is over.
#define BRAIDCAST_ERROR_NO_CONNECTION -2

// The send buffer is full: wait for BRAIDCAST_WRITABLE.
#define BRAIDCAST_ERROR_FULL -3

// The message was not taken for another reason: it is empty or too long, or the connection is
// closing.
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

// There are messages to receive where there were none, or still are after some were received:
// receive one, or all that there are.
#define BRAIDCAST_READABLE 2

// There is room to send again after BRAIDCAST_ERROR_FULL.
#define BRAIDCAST_WRITABLE 3

// A path carries data; `text` is its name.
#define BRAIDCAST_PATH_UP 4

// A path no longer answers; `text` is its name.
#define BRAIDCAST_PATH_DOWN 5

// A message was discarded, too late or repeated too often; `context` is what it was sent with.
#define BRAIDCAST_DISCARDED 6

// The connection is over, and all that came was read; `reason` and `text` say why, and `unsettled`
// names the messages of which it is not known whether they arrived.
#define BRAIDCAST_CLOSED 7

// All of a message that was sent with `report` was acknowledged; `context` is what it was sent
// with.
#define BRAIDCAST_DELIVERED 8

// The other end lost its state and began anew: another process may be there.
#define BRAIDCAST_RESTARTED 9

// Why a connection is over: both ends had delivered all.
#define BRAIDCAST_REASON_SHUTDOWN 1

// braidcast_abort was called.
#define BRAIDCAST_REASON_ABORTED 2

// The other end aborted it.
#define BRAIDCAST_REASON_ABORTED_BY_PEER 3

// Nobody answered. It may be worth trying again.
#define BRAIDCAST_REASON_NO_ANSWER 4

// The other end was silent on all paths for 30 seconds. It may be worth trying again.
#define BRAIDCAST_REASON_PATHS_FAILED 5

// The other end has another key, or one end encrypts and the other does not.
#define BRAIDCAST_REASON_INSECURE 6

// The other end broke the protocol.
#define BRAIDCAST_REASON_VIOLATION 7

// The other end was started anew, and knows nothing of the connection: connect again.
#define BRAIDCAST_REASON_PEER_RESTARTED 8

// The name of a host has no address that is known. It may be worth trying again.
#define BRAIDCAST_REASON_UNRESOLVED 9

// The other end's transport ended it; `code` is the error cause of SCTP, 4 if nobody listens there.
#define BRAIDCAST_REASON_BY_TRANSPORT 10

// Another reason, which later versions have.
#define BRAIDCAST_REASON_OTHER 99

// Of BRAIDCAST_REASON_INSECURE: the other end has a key that this end does not let in.
#define BRAIDCAST_INSECURE_WRONG_KEY 1

// The other end does not let in this end's key.
#define BRAIDCAST_INSECURE_NOT_LET_IN 2

// The other end does not encrypt, and this end does.
#define BRAIDCAST_INSECURE_PLAIN_THERE 3

// This end does not encrypt, and the other end does.
#define BRAIDCAST_INSECURE_PLAIN_HERE 4

// The ends know no common way to agree on keys: use the same version.
#define BRAIDCAST_INSECURE_VERSION 5

// Somebody in between changed what the ends offered each other, or their versions differ.
#define BRAIDCAST_INSECURE_ALTERED 6

// This end has a key, and the other end has none.
#define BRAIDCAST_INSECURE_NO_KEY_THERE 7

// The other end has a key, and this end has none.
#define BRAIDCAST_INSECURE_NO_KEY_HERE 8

// This end has a certificate, and the other end has none.
#define BRAIDCAST_INSECURE_NO_CERTIFICATE_THERE 9

// The other end has a certificate, and this end has none.
#define BRAIDCAST_INSECURE_NO_CERTIFICATE_HERE 10

// This end takes only keys that it knows, and the other end has none of its own.
#define BRAIDCAST_INSECURE_UNKNOWN_THERE 11

// The other end takes only keys that it knows, and this end has none of its own.
#define BRAIDCAST_INSECURE_UNKNOWN_HERE 12

// A certificate is not valid at this time.
#define BRAIDCAST_INSECURE_CLOCK 13

// The certificate is for another host.
#define BRAIDCAST_INSECURE_WRONG_HOST 14

// A certificate is not good for another reason.
#define BRAIDCAST_INSECURE_CERTIFICATE 15

// The other end agreed on no keys in time.
#define BRAIDCAST_INSECURE_SILENT 16

// The other end showed another key in the middle of the connection.
#define BRAIDCAST_INSECURE_CHANGED 17

// Keys were used up before new ones were agreed on.
#define BRAIDCAST_INSECURE_SPENT 18

// A sender or a receiver of live media. It runs in a thread of its own, and several threads may use
// it; one at a time may call braidcast_media_poll, because of what that hands out.
typedef struct braidcast_media braidcast_media;

// A socket for messages over several networks at once. Several threads may use it: a call goes
// before one that waits in braidcast_poll. One thread at a time may call braidcast_poll, and one
// braidcast_recv, because of what they hand out.
typedef struct braidcast_socket braidcast_socket;

// A path: where it leads, and what it leaves through.
typedef struct braidcast_path {
  // sizeof(braidcast_path).
  size_t size;
  // Address or name and port of the other end, for example "192.0.2.1:9000", "[2001:db8::1]:9000"
  // or "home.example:9000".
  const char *remote;
  // The interface ("wlan0") or local address that it leaves through; NULL: as the routing table
  // has it.
  const char *via;
} braidcast_path;

// How to send a message. All zero but the size is the default: in order on stream 0, delivered
// however long it takes.
typedef struct braidcast_send_options {
  // sizeof(braidcast_send_options).
  size_t size;
  // Comes back in the events BRAIDCAST_DISCARDED, BRAIDCAST_DELIVERED and BRAIDCAST_CLOSED.
  uint64_t context;
  // In how many milliseconds it must be at the other end; 0: it is never too late. What would be
  // later, by the delay of the quickest path, is neither sent nor repeated. What has left may still
  // come later if the delay grows meanwhile: `late` of braidcast_message.
  uint32_t deadline_ms;
  // Repeated at most so often; -1: not at all; 0: as long as it takes.
  int32_t max_retransmissions;
  // The kind of message, for the other end's application.
  uint32_t ppid;
  // Messages of a stream are in order; 0 to 63.
  uint16_t stream;
  // Not 0: deliver it as soon as it is complete, whatever its stream waits for.
  uint8_t unordered;
  // Not 0: report BRAIDCAST_DELIVERED.
  uint8_t report;
  // How important its stream is from now on, -3 to 4; 0 is usual. What waits in a stream of a
  // higher number goes first.
  int8_t priority;
} braidcast_send_options;

// A message that was received.
typedef struct braidcast_message {
  // sizeof(braidcast_message).
  size_t size;
  // Its bytes, until the next call of braidcast_recv or braidcast_socket_free with this socket.
  const uint8_t *data;
  // How many.
  size_t len;
  // What the sender said of its kind.
  uint32_t ppid;
  // The stream it came on.
  uint16_t stream;
  // Not 0: it was sent outside the order of its stream.
  uint8_t unordered;
  // Not 0: it came after its deadline. 0 also if that is not known.
  uint8_t late;
  // Microseconds from when it was given to the sender until it could be received. Below 0: not known,
  // for example as it has no deadline; then 0 stands in the two below.
  int64_t age_us;
  // Microseconds after its deadline at which it came; 0: in time.
  uint64_t late_us;
  // How far both may be off, in microseconds: there is no clock that both ends have.
  uint64_t uncertainty_us;
} braidcast_message;

// What happened to a connection.
typedef struct braidcast_event {
  // sizeof(braidcast_event).
  size_t size;
  // Which one.
  uint64_t connection;
  // Of BRAIDCAST_DISCARDED and BRAIDCAST_DELIVERED.
  uint64_t context;
  // BRAIDCAST_CONNECTED and so on.
  int kind;
  // Of BRAIDCAST_CLOSED: BRAIDCAST_REASON_SHUTDOWN and so on.
  int reason;
  // A name or a reason in words, else ""; of BRAIDCAST_REASON_ABORTED_BY_PEER the words that the
  // other end gave to braidcast_abort. Until the next call of braidcast_poll or
  // braidcast_socket_free with this socket.
  const char *text;
  // Of BRAIDCAST_CLOSED: the contexts of messages that were neither acknowledged nor discarded.
  // As long as `text`.
  const uint64_t *unsettled;
  // How many.
  size_t unsettled_count;
  // Of BRAIDCAST_CLOSED: the code that the other end gave to braidcast_abort, or
  // BRAIDCAST_INSECURE_WRONG_KEY and so on, or 0.
  uint32_t code;
  // Of BRAIDCAST_REASON_ABORTED_BY_PEER: the reason as the other end gave it, any bytes. As long as
  // `text`.
  const uint8_t *data;
  // How many.
  size_t len;
} braidcast_event;

// What a program is told in words, with the pointer that it gave.
typedef void (*braidcast_log)(void *user, const char *text);

// What a socket is made with. All zero but the size is the default: encrypted, with anybody, for
// live data.
typedef struct braidcast_config {
  // sizeof(braidcast_config).
  size_t size;
  // A key that both ends share; only who has it gets in. Not beside an identity.
  const char *key;
  // The file of a key of this end's own, as `braidcast key identity FILE` makes it; it is made if
  // it is not there.
  const char *identity;
  // With an identity: the fingerprints of those who are let in. NULL: anybody; braidcast_peer
  // says who it is.
  const char *const *authorized;
  // How many. With `authorized` not NULL 0 lets nobody in.
  size_t authorized_count;
  // 0, or BRAIDCAST_PLAIN.
  uint32_t flags;
  // BRAIDCAST_PROFILE_LIVE and so on.
  int profile;
  // After how many milliseconds of silence a connection ends. 0: 30,000.
  uint32_t longest_silence_ms;
  // Bytes of messages that wait at most to be sent on each connection. 0: 4 MiB.
  size_t send_buffer;
  // Bytes of messages that wait at most to be received. 0: 4 MiB.
  size_t receive_buffer;
  // Called within braidcast_poll for what went wrong without ending anything, and for those who
  // were turned away. It may not call braidcast_poll. NULL: nothing is said.
  braidcast_log log;
  // Its first argument.
  void *log_user;
  // A code by which redundancy is sent, for example "tetrys:10,9,200": what is lost need not be sent
  // again if enough of the rest arrives. Every socket takes it. NULL: none is sent.
  const char *fec;
  // Which path the next packet takes, for example "earliest-delivery". NULL: as the profile has it.
  const char *scheduler;
  // In which order messages leave while none can, and which are discarded then, for example
  // "in-time". NULL: streams by their priority, each in the order in which its messages came.
  const char *queue;
  // Bytes of the longest message, at most as many as each buffer has. 0: 2 MiB, or as many as
  // smaller buffers have.
  size_t max_message;
  // Connections that others may begin; one more takes the place of one that is silent. 0: 1024;
  // below 0: none.
  int32_t max_connections;
} braidcast_config;

// What prepares a descriptor, with the pointer that the program gave. Returns 0, or an errno if the
// socket is not to be used.
typedef int (*braidcast_prepare)(void *user, int fd);

// How to send or receive. All zero but the size is the default.
typedef struct braidcast_media_options {
  // sizeof(braidcast_media_options).
  size_t size;
  // Sender: what the stream is called. Receiver that is called: the one that it takes. NULL: no name, or
  // any.
  const char *name;
  // Sender: how many milliseconds after its capture everything comes out. 0: 500.
  uint32_t latency_ms;
  // How many milliseconds the other end may be gone before it is over. 0: for ever.
  uint32_t give_up_ms;
  // Sender: the least rate that the encoder is able to make, bit/s. 0: 100,000.
  uint64_t least;
  // Sender: the greatest, bit/s. 0: 50,000,000.
  uint64_t greatest;
  // Receiver: hands out access units, BRAIDCAST_MEDIA_UNIT. 0: a transport stream, BRAIDCAST_MEDIA_BYTES.
  uint8_t units;
  // Receiver: hands out what is there as soon as all before it is.
  uint8_t early;
  // Receiver: how many streams with names are taken at the same time. 0: one, of any name.
  uint16_t streams;
} braidcast_media_options;

// A frame of video, or a packet of audio.
typedef struct braidcast_media_unit {
  // sizeof(braidcast_media_unit).
  size_t size;
  // Its bytes.
  const uint8_t *data;
  // How many.
  size_t len;
  // When it is to be shown, in microseconds by the encoder's clock; at a receiver one second more than the
  // sender said.
  uint64_t pts_us;
  // When it is to be decoded, if `has_dts`.
  uint64_t dts_us;
  // The track, as braidcast_media_add_track returned it.
  uint16_t track;
  // Not 0: `dts_us` counts. 0: it is decoded when it is shown.
  uint8_t has_dts;
  // Not 0: a decoder can begin here.
  uint8_t key;
  // The layer, 0 for the one that all others need. Of too many frames the highest layers are discarded
  // first.
  uint8_t layer;
  // Receiver: nothing of it is missing, as far as can be seen.
  uint8_t whole;
  // Receiver: channels of Opus.
  uint8_t channels;
  // Receiver: BRAIDCAST_CODING_H264 and so on.
  uint32_t coding;
} braidcast_media_unit;

// What a program may send now.
typedef struct braidcast_rate {
  // sizeof(braidcast_rate).
  size_t size;
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
  // Not 0: no path was full in the last ten seconds. More may be possible, and is asked for as
  // soon as this is used.
  uint8_t is_floor;
  // Not 0: the paths carry less than the program's minimum rate.
  uint8_t below_least;
} braidcast_rate;

// What has been done so far: units are frames of video, packets of audio and tables.
typedef struct braidcast_media_report {
  // sizeof(braidcast_media_report).
  size_t size;
  // Units that were captured.
  uint64_t captured;
  // Units that came on time.
  uint64_t on_time;
  // Units that came too late.
  uint64_t late;
  // Units that the sender discarded, since they would have come too late.
  uint64_t given_up;
  // Units that neither came nor were discarded, as far as is known.
  uint64_t missing;
  // Units whose outcome is not known yet.
  uint64_t not_known_yet;
  // Bytes of units sent or received.
  uint64_t bytes;
  // Bytes that wait.
  uint64_t buffered_bytes;
  // Seconds since the connection was made.
  double seconds;
  // Times that a sender connected again, or that another one took its place.
  uint64_t restarts;
} braidcast_media_report;

// A path of a connection as it is now.
typedef struct braidcast_path_report {
  // sizeof(braidcast_path_report).
  size_t size;
  // The interface or address it leaves through, or else the address that it leads to.
  char name[BRAIDCAST_NAME_SIZE];
  // The address that it leads to, for example "192.0.2.1:9000".
  char remote[BRAIDCAST_NAME_SIZE];
  // BRAIDCAST_PATH_ACTIVE and so on.
  int state;
  // Smoothed round-trip time in milliseconds; below 0 before the first measurement.
  double rtt_ms;
  // What it could carry, in bits per second of data; below 0 before anything was acknowledged.
  double capacity;
  // Bytes sent in packets, without the headers below them.
  uint64_t sent_bytes;
  // Bytes received in packets, without the headers below them.
  uint64_t received_bytes;
  // Parts of messages sent over it that were lost.
  uint64_t lost_chunks;
} braidcast_path_report;

// What a sender reports, and what a receiver hands out.
typedef struct braidcast_media_event {
  // sizeof(braidcast_media_event).
  size_t size;
  // BRAIDCAST_MEDIA_CONNECTED and so on.
  int kind;
  // Of BRAIDCAST_MEDIA_LOST and BRAIDCAST_MEDIA_ENDED: BRAIDCAST_REASON_SHUTDOWN and so on.
  int reason;
  // What more is known of the reason, as in braidcast_event.
  uint32_t code;
  // Receiver: which stream.
  uint32_t stream;
  // Of BRAIDCAST_MEDIA_ENDED: not 0 if all that was promised came.
  uint8_t complete;
  // A name or a reason in words, else "". This and what follows: until the next call of
  // braidcast_media_poll or braidcast_media_free.
  const char *text;
  // Of BRAIDCAST_MEDIA_BYTES.
  const uint8_t *data;
  // How many.
  size_t len;
  // Of BRAIDCAST_MEDIA_UNIT, else NULL.
  const struct braidcast_media_unit *unit;
} braidcast_media_event;

// What is to be reckoned with. All zero but the size is the default.
typedef struct braidcast_rate_options {
  // sizeof(braidcast_rate_options).
  size_t size;
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

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library that runs, as BRAIDCAST_VERSION is that of the header.
uint32_t braidcast_version(void);

// Makes a socket. With a `key`, which both ends share, only who has it gets in; NULL: encrypted,
// with anybody. `flags`: 0, or BRAIDCAST_PLAIN. Returns NULL on failure; braidcast_last_error says
// why. Free it with braidcast_socket_free. braidcast_socket_new_config has more.
//
// # Safety
// `key` is NULL or ends with a zero byte.
struct braidcast_socket *braidcast_socket_new(const char *key, uint32_t flags);

// Frees a socket; NULL does nothing. Connections that are not over are aborted.
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
// `socket` is of braidcast_socket_new, `address` ends with a zero byte, `port` is NULL or can be
// written.
int braidcast_bind(struct braidcast_socket *socket, const char *address, uint16_t *port);

// Accepts connections from now on; each begins with the event BRAIDCAST_CONNECTED. Strangers, who
// have another key or none, are not shown.
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

// Adds a path to a connection that was begun here. One whose interface is not there joins when
// that appears.
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
int braidcast_leave(struct braidcast_socket *socket, uint64_t connection, const char *name);

// Takes a message of `len` bytes to be sent; it is copied. It leaves in the next braidcast_poll,
// or when the paths have room.
//
// # Safety
// `socket` is of braidcast_socket_new, `data` has `len` bytes, `options` is NULL or one.
int braidcast_send(struct braidcast_socket *socket,
                   uint64_t connection,
                   const void *data,
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
int braidcast_poll(struct braidcast_socket *socket, int timeout_ms, struct braidcast_event *event);

// Ends a connection once everything that was sent is delivered. BRAIDCAST_CLOSED follows.
//
// # Safety
// `socket` is of braidcast_socket_new.
int braidcast_shutdown(struct braidcast_socket *socket, uint64_t connection);

// Ends a connection at once; the other end is told `code`, which means what the two programs agree
// on, and `reason`, which may be NULL. BRAIDCAST_CLOSED follows.
//
// # Safety
// `socket` is of braidcast_socket_new; `reason` is NULL or ends with a zero byte.
int braidcast_abort(struct braidcast_socket *socket,
                    uint64_t connection,
                    uint32_t code,
                    const char *reason);

// The same with a reason of any `len` bytes, of which some 250 are told.
//
// # Safety
// `socket` is of braidcast_socket_new; `reason` has `len` bytes, or `len` is 0.
int braidcast_abort_with(struct braidcast_socket *socket,
                         uint64_t connection,
                         uint32_t code,
                         const uint8_t *reason,
                         size_t len);

// Ends all connections in good order, and waits for that at most `timeout_ms` milliseconds.
// Messages that still come are lost, and so are events. Returns 1 if all that was sent was
// acknowledged or discarded, else 0.
//
// # Safety
// `socket` is of braidcast_socket_new.
int braidcast_close(struct braidcast_socket *socket, uint32_t timeout_ms);

// Has braidcast_poll return 0 now in the threads that wait in it; if none does, its next call
// returns 0 at once. May be called from any thread, and from no signal handler.
//
// # Safety
// `socket` is of braidcast_socket_new.
int braidcast_interrupt(struct braidcast_socket *socket);

// Bytes of messages to the other end that wait or are not acknowledged yet, into `bytes`.
//
// # Safety
// `socket` is of braidcast_socket_new; `bytes` can be written.
int braidcast_buffered(struct braidcast_socket *socket, uint64_t connection, size_t *bytes);

// Makes a socket. Returns NULL on failure; braidcast_last_error says why. Free it with
// braidcast_socket_free.
//
// # Safety
// `config` is NULL or one, whose texts are NULL or end with a zero byte; `authorized` is NULL or
// has `authorized_count` of them.
struct braidcast_socket *braidcast_socket_new_config(const struct braidcast_config *config);

// Writes the fingerprint of the identity in a file, by which others know it. If there is no such
// file, a new key is made in it.
//
// # Safety
// `file` ends with a zero byte; `fingerprint` has BRAIDCAST_FINGERPRINT_SIZE bytes.
int braidcast_identity(const char *file, char *fingerprint);

// Lets in others from now on: those with these `count` fingerprints. Connections that there are
// stay; braidcast_peer says who is there.
//
// # Safety
// `socket` is one with an identity; `authorized` are `count` texts that end with a zero byte.
int braidcast_set_authorized(struct braidcast_socket *socket,
                             const char *const *authorized,
                             size_t count);

// Who is at the other end of a connection: writes the fingerprint of its key in hexadecimal digits,
// or "" if none is known. Returns 1 if that is one that this end insisted on, else 0.
//
// # Safety
// `socket` is of braidcast_socket_new; `fingerprint` has BRAIDCAST_FINGERPRINT_SIZE bytes.
int braidcast_peer(struct braidcast_socket *socket, uint64_t connection, char *fingerprint);

// Has others connect to a UDP socket that is bound, for example one that systemd has opened. It is
// duplicated, and stays the program's to close; it becomes non-blocking. Writes its address to
// `address` unless that is NULL.
//
// # Safety
// `socket` is of braidcast_socket_new; `address` is NULL or has BRAIDCAST_NAME_SIZE bytes.
int braidcast_adopt(struct braidcast_socket *socket, int fd, char *address);

// Calls `prepare` with each UDP socket that is opened from now on, before anything is sent through
// it: to set a mark, or to keep it out of a VPN. If it returns an errno, the path is not opened.
// It is called within functions of this socket, and may call none of them. NULL: no longer.
//
// # Safety
// `socket` is of braidcast_socket_new; `prepare` may be called with `user` until the socket is
// freed, by each thread that calls functions of the socket.
int braidcast_on_open(struct braidcast_socket *socket, braidcast_prepare prepare, void *user);

// What went wrong in this thread's last call that failed, in words; "" if none did. Until the next
// call that fails.
const char *braidcast_last_error(void);

// Sends to the receiver that `count` paths lead to, and tries until there is one. `config` NULL: encrypted, to
// anybody; of its fields those count that say who is let in. `options` NULL: the default. Returns NULL on
// failure; braidcast_last_error says why. Free it with braidcast_media_free.
//
// # Safety
// `config` is NULL or one, as for braidcast_socket_new_config; `options` is NULL or one, whose
// texts are NULL or end with a zero byte; `paths` are `count`.
struct braidcast_media *braidcast_media_send_to(const struct braidcast_config *config,
                                                const struct braidcast_media_options *options,
                                                const struct braidcast_path *paths,
                                                size_t count);

// Sends to whichever receiver calls at one of `count` addresses, for example "0.0.0.0:9000".
//
// # Safety
// As of braidcast_media_send_to; `addresses` are `count` texts that end with a zero byte.
struct braidcast_media *braidcast_media_send_at(const struct braidcast_config *config,
                                                const struct braidcast_media_options *options,
                                                const char *const *addresses,
                                                size_t count);

// Receives from senders that call at one of `count` addresses, for example "0.0.0.0:9000".
//
// # Safety
// As of braidcast_media_send_at.
struct braidcast_media *braidcast_media_receive_at(const struct braidcast_config *config,
                                                   const struct braidcast_media_options *options,
                                                   const char *const *addresses,
                                                   size_t count);

// Calls the sender that waits at the other end of `count` paths, and again when it is lost.
//
// # Safety
// As of braidcast_media_send_to.
struct braidcast_media *braidcast_media_receive_from(const struct braidcast_config *config,
                                                     const struct braidcast_media_options *options,
                                                     const struct braidcast_path *paths,
                                                     size_t count);

// Ends it at once, which the other end is told, and frees it; NULL does nothing.
//
// # Safety
// `media` is NULL or one that was made here, and not used again.
void braidcast_media_free(struct braidcast_media *media);

// The port of the address number `place`, from 0, that it is called at.
//
// # Safety
// `media` was made here.
int braidcast_media_port(const struct braidcast_media *media, size_t place);

// A file descriptor that is readable while braidcast_media_poll has something to hand out. Do
// not read from it, and do not close it.
//
// # Safety
// `media` was made here.
int braidcast_media_fd(const struct braidcast_media *media);

// Sends the next `len` bytes of a transport stream, captured now; they may begin and end anywhere. Never waits.
//
// # Safety
// `media` was made here; `data` has `len` bytes.
int braidcast_media_write(struct braidcast_media *media,
                          const uint8_t *data,
                          size_t len);

// Adds a track of `coding`, BRAIDCAST_CODING_H264 and so on, for access units; `channels` of
// Opus, else 0. Returns its number.
//
// # Safety
// `media` was made here.
int braidcast_media_add_track(struct braidcast_media *media, uint32_t coding, uint8_t channels);

// Sends an access unit, captured now; it is copied. Units of a track come in the order in which
// they are decoded. Never waits; what would come too late is discarded.
//
// # Safety
// `media` was made here; `unit` is one, whose `data` has `len` bytes.
int braidcast_media_send(struct braidcast_media *media, const struct braidcast_media_unit *unit);

// How many bits the next frame may have, and which rate will hold for the next second, into
// `rate`. Ask before each frame.
//
// # Safety
// `media` was made here; `rate` can be written.
int braidcast_media_rate(struct braidcast_media *media, struct braidcast_rate *rate);

// What has been done so far, into `report`; of a receiver, on `stream`.
//
// # Safety
// `media` was made here; `report` can be written.
int braidcast_media_report_now(struct braidcast_media *media,
                               uint32_t stream,
                               struct braidcast_media_report *report);

// The paths, into `reports`, of which there are `count`; each has its size set. Of a receiver,
// those of `stream`. Returns how many paths there are, which may be more than `count`; some have
// left.
//
// # Safety
// `media` was made here; `reports` can be written, `count` of the size that the first one has.
int braidcast_media_paths(struct braidcast_media *media,
                          uint32_t stream,
                          struct braidcast_path_report *reports,
                          size_t count);

// Waits for what is next, for at most `timeout_ms` milliseconds, or for ever if that is below 0.
// Returns 1 with `event`, or 0 if there was nothing in that time.
//
// # Safety
// `media` was made here; `event` can be written.
int braidcast_media_poll(struct braidcast_media *media,
                         int timeout_ms,
                         struct braidcast_media_event *event);

// Has braidcast_media_poll return 0 now in the threads that wait in it; if none does, its next
// call returns 0 at once. May be called from any thread, and from no signal handler.
//
// # Safety
// `media` was made here.
int braidcast_media_interrupt(struct braidcast_media *media);

// Sender: the stream has ended. Waits for at most `timeout_ms` milliseconds until what is not
// too late has arrived. Returns 1 if the receiver has that, and the end, else 0. Receiver: ends
// all streams; what has arrived is still handed out when it is due, and then
// braidcast_media_poll says that it is over. Returns 1.
//
// # Safety
// `media` was made here.
int braidcast_media_finish(struct braidcast_media *media, uint32_t timeout_ms);

// The numbers of the connections that there are, oldest first, into `connections`, which has room
// for `count`. A connection is there from braidcast_connect or BRAIDCAST_CONNECTED until
// BRAIDCAST_CLOSED. Returns how many there are, which may be more than `count`.
//
// # Safety
// `socket` is of braidcast_socket_new; `connections` can be written, `count` numbers.
int braidcast_connections(struct braidcast_socket *socket, uint64_t *connections, size_t count);

// The paths of a connection as they are now, into `reports`, of which there are `count`; each has
// its size set. Returns how many paths there are, which may be more than `count`.
//
// # Safety
// `socket` is of braidcast_socket_new; `reports` can be written, `count` of the size that the
// first one has.
int braidcast_paths(struct braidcast_socket *socket,
                    uint64_t connection,
                    struct braidcast_path_report *reports,
                    size_t count);

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
