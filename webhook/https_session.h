// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

#include "webhook/certificate.h"
#include "webhook/review.h"
#include "webhook/server_options.h"
#include "webhook/standing.h"

namespace resmgr::webhook {

// One connection: handshake, then request after request until either side ends it. Every wait has a
// deadline. Lives as long as an operation of it is under way, all on the server's thread.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  // What the server decides for all its sessions. Outlives them.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Makes room for a body of up to `bytes`, at the cost of other sessions where there is none;
    // they are closed.
    virtual void MakeRoomForBody(size_t bytes) = 0;
    // From the destructor: the session holds no room any more.
    virtual void Ended(Session& session) = 0;
  };

  // `owner` and `limits` outlive the session.
  Session(Socket socket, TlsContext tls, const ServerLimits& limits, Owner& owner);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Start();

  // The server ends: closes the connection, after the answer if there is one to give.
  void Drain();

  // Closes the connection at once, without an answer.
  void Abort();

  const Standing& standing() const { return standing_; }

 private:
  using Request = boost::beast::http::request<boost::beast::http::string_body>;
  using Response = boost::beast::http::response<boost::beast::http::string_body>;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using Error = boost::beast::error_code;

  void ReadHeader();
  void ReadBody();
  size_t BodyRoom() const;
  // Answers what could not be read as a request, where the client may still listen.
  void Refuse(const Error& error);
  void Answer(const Request& request);
  void Write(HttpReply reply, bool keep_alive);
  // Says goodbye, and takes what the client is still sending for a moment: a connection that is
  // closed with unread bytes would take our answer away from it.
  void Close();
  void Discard();

  // Calls `next` when the operation succeeded, else lets the session end.
  template <typename Next>
  auto Then(Next next);

  const TlsContext tls_;
  const ServerLimits& limits_;
  Owner& owner_;
  boost::beast::ssl_stream<boost::beast::tcp_stream> stream_;
  boost::beast::flat_buffer buffer_;
  // Made anew for each request.
  std::optional<Parser> parser_;
  Response response_;
  std::array<char, 4096> discarded_{};
  Standing standing_;
  bool draining_ = false;
};

}  // namespace resmgr::webhook
