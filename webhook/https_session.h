// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
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
#include "webhook/server.h"

namespace resmgr::webhook {

// The properties by which the server chooses the connection to be closed for another one.
struct Standing {
  using Clock = std::chrono::steady_clock;

  bool reviewed = false;  // a review was answered on it
  bool waiting = true;    // for a request, or for the connection's end
  // The time of the last answered review; without one, of the connection's begin.
  Clock::time_point proven_at = Clock::now();
  size_t body_room = 0;  // bytes reserved for the body that is being read
  Clock::time_point body_since{};
  bool closed = false;  // its end is under way
};

// Whether `a` is closed before `b`: first connections without an answered review, then those that
// wait for a request, then those with a request under way; among equals the one with the oldest
// proven_at. API servers send reviews within milliseconds, so theirs is never the oldest.
bool LessUseful(const Standing& a, const Standing& b);

// One connection: a handshake, then requests until either side ends it. Every wait has a deadline.
// A session lives as long as one of its operations is under way. Server's thread only.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  // The server's part that all sessions share. Outlives them.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Makes room for a body of up to `bytes`; if there is none, closes other sessions.
    virtual void MakeRoomForBody(size_t bytes) = 0;
    // The client has ended the handshake, since it does not accept the certificate.
    virtual void CertificateRefused(const boost::beast::error_code& alert) = 0;
    // Whether the server is about to end: clients are to connect to another one.
    virtual bool leaving() const = 0;
    // Called by the destructor: the session holds no room any more.
    virtual void Ended(Session& session) = 0;
  };

  // `owner` and `limits` outlive the session.
  Session(Socket socket, TlsContext tls, const ServerLimits& limits, Owner& owner);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Start();

  // Closes the connection because the server ends, after the answer if one is under way.
  void Drain();

  // Closes the connection at once, without an answer.
  void Abort();

  const Standing& standing() const { return standing_; }

 private:
  using Request = boost::beast::http::request<boost::beast::http::string_body>;
  using Response = boost::beast::http::response<boost::beast::http::string_body>;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using Error = boost::beast::error_code;

  void Shaken(const Error& error);
  void ReadHeader();
  void ReadBody();
  size_t BodyRoom() const;
  // Answers bytes that could not be parsed as a request, if the client may still read an answer.
  void Refuse(const Error& error);
  void Answer(const Request& request);
  void Write(HttpReply reply, bool keep_alive);
  // Shuts the connection down and reads what the client still sends for a moment: closing with
  // unread bytes would make the client lose the answer.
  void Close();
  void Discard();

  // Wraps a handler: calls `next` if the operation succeeded, else lets the session end.
  template <typename Next>
  auto Then(Next next);

  const TlsContext tls_;
  const ServerLimits& limits_;
  Owner& owner_;
  boost::beast::ssl_stream<boost::beast::tcp_stream> stream_;
  boost::beast::flat_buffer buffer_;
  // Created anew for each request.
  std::optional<Parser> parser_;
  Response response_;
  std::array<char, 4096> discarded_{};
  Standing standing_;
  bool draining_ = false;
};

}  // namespace resmgr::webhook
