// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"
#include "test/support/api_server/reserved_port.h"

typedef struct ssl_ctx_st SSL_CTX;  // as OpenSSL declares it

namespace resmgr::test {

struct HttpServerRequest {
  std::string method;
  std::string path;                            // decoded
  std::map<std::string, std::string> query;    // decoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string client;  // common name in a certificate that the server's CA has signed; "": none
};

// One reply, whole or in pieces. Every function returns false once the peer is gone or the server
// ends.
class HttpServerReply {
 public:
  virtual ~HttpServerReply() = default;
  virtual bool Send(int status, std::string_view body,
                    const std::map<std::string, std::string>& headers = {}) = 0;
  // Pieces of a reply with status 200 whose end is not known yet; the first begins it.
  virtual bool SendPiece(std::string_view piece) = 0;
  virtual bool EndPieces() = 0;
  // Ends the connection at once, also within a message.
  virtual void Cut() = 0;
  virtual bool PeerIsThere() = 0;
};

// HTTP/1.1 on 127.0.0.1, each connection with a thread of its own: for tests, where faults matter
// more than speed. Thread-safe.
class HttpServer {
 public:
  // Called on a connection's thread.
  using Handler = std::function<void(const HttpServerRequest& request, HttpServerReply& reply)>;

  // Keys and certificates for TLS, as PEM; clients may show certificates that `ca` has signed.
  struct Tls {
    std::string certificate;
    std::string key;
    std::string ca;
  };

  explicit HttpServer(Handler handler) : handler_(std::move(handler)) {}
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer() { Stop(); }

  // Port 0 takes a free one, which stays this server's until its end. kUnavailable: the port cannot
  // be had.
  Status Start(int port, const Tls* tls = nullptr);
  // Cuts every connection and waits for their threads.
  void Stop();
  // Cuts every connection; new ones are served.
  void CutConnections();
  int port() const { return port_; }

 private:
  struct Connection {
    UniqueFd fd;
    std::thread thread;
    std::atomic<bool> ended{false};
  };

  void Accept();
  void Serve(Connection& connection);
  void Reap();

  const Handler handler_;
  int port_ = 0;
  std::optional<ReservedPort> reserved_;
  UniqueFd listener_;
  std::shared_ptr<SSL_CTX> tls_;
  std::thread accept_thread_;
  std::atomic<bool> ending_{false};
  std::mutex mutex_;
  std::list<Connection> connections_;
};

// A connection that blocks: plain, or with TLS on it. The fd stays the caller's.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // 0 at the end, -1 on errors.
  virtual ssize_t Read(char* buffer, size_t size) = 0;
  virtual bool Write(std::string_view bytes) = 0;
  // The common name in the peer's certificate; "" without a valid one.
  virtual std::string PeerName() const = 0;

  // Opens a plain stream without a context; nullptr if the handshake fails.
  static std::unique_ptr<ByteStream> Open(int fd, SSL_CTX* tls);
};

}  // namespace resmgr::test
