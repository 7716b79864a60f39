"""Ten messages over two paths of this machine and back: a server in a thread, and a client."""

import threading

import braidcast

KEY = "a passphrase that both ends know"


def serve(socket: braidcast.Socket) -> None:
    """Sends back what comes, until the client has gone."""
    while event := socket.poll(timeout=20):
        if event.kind == "readable":
            while (message := socket.recv(event.connection)) is not None:
                socket.send(event.connection, message)
        elif event.kind == "closed":
            return


server = braidcast.Socket(key=KEY)
addresses = [server.bind("127.0.0.1:0") for _ in range(2)]
server.listen()
thread = threading.Thread(target=serve, args=[server])
thread.start()

client = braidcast.Socket(key=KEY)
# In the field: client.connect([("192.0.2.1:9000", "wlan0"), ("192.0.2.1:9000", "wwan0")])
connection = client.connect(addresses)
up = answers = 0
while answers < 10 and (event := client.poll(timeout=20)):
    if event.kind == "path up":
        print("path to", event.text, "is up")
        up += 1
        if up == 2:
            for number in range(10):
                client.send(connection, b"message %d" % number, deadline=5.0)
    elif event.kind == "readable":
        while (message := client.recv(connection)) is not None:
            print("answer:", message.decode())
            answers += 1
for path in client.paths(connection):
    print(path["name"], path["state"], f"{path['rtt_ms']:.2f} ms", path["sent_bytes"], "bytes")
assert client.close(timeout=20) and answers == 10
thread.join()
