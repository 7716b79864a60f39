/* braidcast.hpp: messages there and back, what is freed, and what is thrown. */
#include <braidcast.hpp>

#include <cassert>
#include <cstring>

using namespace std::chrono_literals;

static braidcast::Event wait_for(braidcast::Socket &socket, braidcast::Socket &other, int kind)
{
    for (int i = 0; i < 20000; i++) {
        other.poll(0ms);
        if (auto event = socket.poll(1ms); event && event->kind == kind)
            return *event;
    }
    throw std::runtime_error("nothing happened for long");
}

int main()
{
    braidcast::Config config;
    config.key = "a passphrase of some length";
    config.longest_silence = 20s;
    config.max_message = 100000;
    config.max_connections = 5;
    braidcast::Socket server(config);
    std::vector<braidcast::Path> paths;
    for (int i = 0; i < 2; i++)
        paths.push_back({"127.0.0.1:" + std::to_string(server.bind("127.0.0.1:0")), i ? "127.0.0.1" : ""});
    server.listen();
    braidcast::Socket client = braidcast::Socket(config);
    assert(client.fd() >= 0 && client.connections().empty());
    client.on_open([](int) -> int { throw std::runtime_error("not with this one"); });
    try {
        client.connect(paths);
        assert(!"nothing was opened");
    } catch (const braidcast::Error &error) {
        assert(error.code() == BRAIDCAST_ERROR_PATH && std::strstr(error.what(), std::strerror(ECANCELED)));
    }
    int opened = 0;
    client.on_open([&opened](int fd) { return opened++, fd < 0; });
    const auto connection = client.connect(paths);
    assert(opened == 2 && client.connections() == std::vector<std::uint64_t>{connection});
    client.on_open(nullptr);
    braidcast::SendOptions how;
    how.stream = 3;
    how.ppid = 7;
    how.deadline = 10s;
    assert(client.send(connection, std::string(50000, 'x'), how));
    const auto readable = wait_for(server, client, BRAIDCAST_READABLE);
    const auto message = server.recv(readable.connection);
    assert(message && message->data == std::string(50000, 'x') && message->stream == 3 && message->ppid == 7);
    assert(!message->unordered && !message->is_late() && !server.recv(readable.connection));
    assert(!message->timing || (message->timing->age < 10s && message->timing->uncertainty < 10s));
    assert(server.peer(readable.connection).size() == 64);
    while (client.send(connection, std::string(100000, 'y'))) {
    }
    client.abort(connection, 7, std::string("enough\0", 7));
    assert(wait_for(client, server, BRAIDCAST_CLOSED).unsettled.size() > 10);
    while (server.recv(readable.connection)) {
    }
    auto end = wait_for(server, client, BRAIDCAST_CLOSED);
    assert(end.reason == BRAIDCAST_REASON_ABORTED_BY_PEER && end.code == 7 && end.text == "enough");
    assert(end.data == std::string("enough\0", 7));
    assert(client.connections().empty());
    try {
        server.adopt(-1);
        assert(!"it is no descriptor");
    } catch (const braidcast::Error &error) {
        assert(error.code() == BRAIDCAST_ERROR_ARGUMENT);
    }
    try {
        client.send(connection, "late");
        assert(!"it is over");
    } catch (const braidcast::Error &error) {
        assert(error.code() == BRAIDCAST_ERROR_NO_CONNECTION && std::strstr(error.what(), "no connection"));
    }
    config.authorized.emplace();
    try {
        braidcast::Socket without_identity(config);
        assert(!"a list needs an identity");
    } catch (const braidcast::Error &error) {
        assert(std::strstr(error.what(), "needs an identity"));
    }
    return server.close(1s) ? 0 : 1;
}
