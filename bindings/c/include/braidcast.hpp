/* Braidcast for C++17: braidcast.h with objects that free themselves, and exceptions. Header only; link with
 * -lbraidcast. */
#ifndef BRAIDCAST_HPP
#define BRAIDCAST_HPP

#include <braidcast.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braidcast {

/* What a function returned that failed, and why in words. */
class Error : public std::runtime_error {
public:
    explicit Error(int code) : std::runtime_error(braidcast_last_error()), code_(code) {}
    /* BRAIDCAST_ERROR_FULL and so on. */
    int code() const noexcept { return code_; }

private:
    int code_;
};

/* The result of a call, unless it failed. */
inline int check(int result)
{
    if (result < 0)
        throw Error(result);
    return result;
}

/* What a socket is made with, as braidcast_config has it. */
struct Config {
    std::string key;
    std::string identity;
    /* With an identity: who is let in. Without a value: anybody. */
    std::optional<std::vector<std::string>> authorized;
    int profile = BRAIDCAST_PROFILE_LIVE;
    bool plain = false;
    std::chrono::milliseconds longest_silence{0};
    /* A code by which redundancy is sent; empty: none. Which path the next packet takes; empty: as the profile has
     * it. */
    std::string fec;
    std::string scheduler;
    /* In which order messages leave while none can, for example "in-time". Empty: as they came. */
    std::string queue;
    /* Bytes that each connection holds at most to be sent and to be received. 0: 4 MiB. */
    std::size_t send_buffer = 0;
    std::size_t receive_buffer = 0;
    /* Bytes of the longest message. 0: 2 MiB, or as many as smaller buffers have. */
    std::size_t max_message = 0;
    /* Connections that others may begin. 0: 1024; below 0: none. */
    std::int32_t max_connections = 0;
};

/* A path: "HOST:PORT", and the interface or local address that it leaves through. */
struct Path {
    std::string remote;
    std::string via;
};

/* How to send a message, as braidcast_send_options has it. */
struct SendOptions {
    std::uint16_t stream = 0;
    bool unordered = false;
    /* 0: it is never too late. */
    std::chrono::milliseconds deadline{0};
    std::uint32_t ppid = 0;
    std::uint64_t context = 0;
    bool report = false;
    std::int8_t priority = 0;
};

/* A message that was received. */
struct Message {
    /* How old it is, and for how long its deadline was over when it came; both may be off by the uncertainty. */
    struct Timing {
        std::chrono::microseconds age, late, uncertainty;
    };

    std::string data;
    std::uint16_t stream;
    bool unordered;
    std::uint32_t ppid;
    /* Known of most messages with a deadline, and of no others. */
    std::optional<Timing> timing;

    bool is_late() const { return timing && timing->late.count() > 0; }
};

/* What happened to a connection, as braidcast_event has it. */
struct Event {
    int kind;
    std::uint64_t connection;
    std::uint64_t context;
    int reason;
    std::uint32_t code;
    std::string text;
    std::vector<std::uint64_t> unsettled;
    /* Of BRAIDCAST_REASON_ABORTED_BY_PEER: the reason as the other end gave it, any bytes. */
    std::string data;
};

/* A socket, which is freed with this. It can be moved, and used by several threads as braidcast.h says. */
class Socket {
public:
    explicit Socket(const Config &config = {})
    {
        braidcast_config it = BRAIDCAST_INIT(braidcast_config);
        std::vector<const char *> authorized;
        if (config.authorized)
            for (const auto &fingerprint : *config.authorized)
                authorized.push_back(fingerprint.c_str());
        /* An empty list has an address too: it lets nobody in. */
        authorized.push_back(nullptr);
        it.key = config.key.empty() ? nullptr : config.key.c_str();
        it.identity = config.identity.empty() ? nullptr : config.identity.c_str();
        it.authorized = config.authorized ? authorized.data() : nullptr;
        it.authorized_count = authorized.size() - 1;
        it.flags = config.plain ? BRAIDCAST_PLAIN : 0;
        it.profile = config.profile;
        it.longest_silence_ms = static_cast<std::uint32_t>(config.longest_silence.count());
        it.fec = config.fec.empty() ? nullptr : config.fec.c_str();
        it.scheduler = config.scheduler.empty() ? nullptr : config.scheduler.c_str();
        it.queue = config.queue.empty() ? nullptr : config.queue.c_str();
        it.send_buffer = config.send_buffer;
        it.receive_buffer = config.receive_buffer;
        it.max_message = config.max_message;
        it.max_connections = config.max_connections;
        socket_.reset(braidcast_socket_new_config(&it));
        if (!socket_)
            throw Error(BRAIDCAST_ERROR_ARGUMENT);
    }

    /* The port of the local address that was opened. */
    std::uint16_t bind(const std::string &address)
    {
        std::uint16_t port = 0;
        check(braidcast_bind(get(), address.c_str(), &port));
        return port;
    }

    /* Has others connect to a UDP socket that is bound; it stays the program's to close. Returns its address. */
    std::string adopt(int fd)
    {
        char address[BRAIDCAST_NAME_SIZE];
        check(braidcast_adopt(get(), fd, address));
        return address;
    }

    /* Calls `prepare` with each UDP socket that is opened from now on. It returns 0, or an errno if the path is not to
     * be opened, as one is not if it throws. It may not use this socket. */
    void on_open(std::function<int(int)> prepare)
    {
        const auto call = [](void *user, int fd) {
            try {
                return (*static_cast<std::function<int(int)> *>(user))(fd);
            } catch (...) {
                return ECANCELED;
            }
        };
        auto kept = std::make_unique<std::function<int(int)>>(std::move(prepare));
        check(braidcast_on_open(get(), *kept ? +call : nullptr, kept.get()));
        /* The one before is called no longer. */
        prepare_ = std::move(kept);
    }

    void listen() { check(braidcast_listen(get())); }

    std::uint64_t connect(const std::vector<Path> &paths)
    {
        std::vector<braidcast_path> all;
        for (const auto &path : paths)
            all.push_back(BRAIDCAST_PATH(path.remote.c_str(), path.via.empty() ? nullptr : path.via.c_str()));
        std::uint64_t connection = 0;
        check(braidcast_connect(get(), all.data(), all.size(), &connection));
        return connection;
    }

    /* Returns false if there is no room now; BRAIDCAST_WRITABLE follows. */
    bool send(std::uint64_t connection, std::string_view message, const SendOptions &how = {})
    {
        braidcast_send_options it = BRAIDCAST_INIT(braidcast_send_options);
        it.stream = how.stream;
        it.unordered = how.unordered;
        it.deadline_ms = static_cast<std::uint32_t>(how.deadline.count());
        it.ppid = how.ppid;
        it.context = how.context;
        it.report = how.report;
        it.priority = how.priority;
        const int result = braidcast_send(get(), connection, message.data(), message.size(), &it);
        return result == BRAIDCAST_ERROR_FULL ? false : (check(result), true);
    }

    std::optional<Message> recv(std::uint64_t connection)
    {
        braidcast_message it = BRAIDCAST_INIT(braidcast_message);
        if (check(braidcast_recv(get(), connection, &it)) == 0)
            return std::nullopt;
        std::optional<Message::Timing> timing;
        if (it.age_us >= 0) {
            const auto us = [](auto n) { return std::chrono::microseconds(static_cast<std::int64_t>(n)); };
            timing = Message::Timing{us(it.age_us), us(it.late_us), us(it.uncertainty_us)};
        }
        std::string data(reinterpret_cast<const char *>(it.data), it.len);
        return Message{std::move(data), it.stream, it.unordered != 0, it.ppid, timing};
    }

    /* Waits at most so long; below 0: until something happens. */
    std::optional<Event> poll(std::chrono::milliseconds timeout)
    {
        braidcast_event it = BRAIDCAST_INIT(braidcast_event);
        if (check(braidcast_poll(get(), static_cast<int>(timeout.count()), &it)) == 0)
            return std::nullopt;
        return Event{it.kind, it.connection, it.context, it.reason, it.code, it.text,
                     {it.unsettled, it.unsettled + it.unsettled_count},
                     {reinterpret_cast<const char *>(it.data), it.len}};
    }

    void shutdown(std::uint64_t connection) { check(braidcast_shutdown(get(), connection)); }

    void abort(std::uint64_t connection, std::uint32_t code = 0, const std::string &reason = {})
    {
        auto bytes = reinterpret_cast<const std::uint8_t *>(reason.data());
        check(braidcast_abort_with(get(), connection, code, bytes, reason.size()));
    }

    /* Returns true if all that was sent was acknowledged or discarded. */
    bool close(std::chrono::milliseconds timeout)
    {
        return check(braidcast_close(get(), static_cast<std::uint32_t>(timeout.count()))) == 1;
    }

    /* The fingerprint of the other end's key; empty if nothing is encrypted. */
    std::string peer(std::uint64_t connection)
    {
        char fingerprint[BRAIDCAST_FINGERPRINT_SIZE];
        check(braidcast_peer(get(), connection, fingerprint));
        return fingerprint;
    }

    /* The connections that there are, oldest first. */
    std::vector<std::uint64_t> connections()
    {
        std::vector<std::uint64_t> all;
        /* Until none came meanwhile. */
        std::size_t count;
        do {
            count = static_cast<std::size_t>(check(braidcast_connections(get(), nullptr, 0)));
            all.resize(count);
            all.resize(static_cast<std::size_t>(check(braidcast_connections(get(), all.data(), all.size()))));
        } while (all.size() > count);
        return all;
    }

    int fd() const { return check(braidcast_fd(get())); }

    /* For what this class does not have. */
    braidcast_socket *get() const noexcept { return socket_.get(); }

private:
    struct Free {
        void operator()(braidcast_socket *socket) const noexcept { braidcast_socket_free(socket); }
    };
    /* Freed after the socket, which calls it. */
    std::unique_ptr<std::function<int(int)>> prepare_;
    std::unique_ptr<braidcast_socket, Free> socket_;
};

} // namespace braidcast

#endif
