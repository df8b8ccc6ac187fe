// SPDX-License-Identifier: Apache-2.0
#include "webhook/https_session.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream_base.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "webhook/routes.h"

namespace resmgr::webhook {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

// Time for a client to close its side of the connection.
constexpr std::chrono::seconds kGoodbye{2};

// Whether the error is a client's alert about the server's certificate.
bool IsAboutCertificate(const beast::error_code& error) {
  if (error.category() != asio::error::get_ssl_category()) return false;
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  return reason >= SSL_AD_REASON_OFFSET + SSL_AD_BAD_CERTIFICATE &&
         reason <= SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_CA;
}

}  // namespace

Session::Session(Socket socket, TlsContext tls, const ServerLimits& limits, Owner& owner)
    : tls_(std::move(tls)),
      limits_(limits),
      owner_(owner),
      stream_(std::move(socket), *tls_),
      // The parser holds a request's bytes; the buffer holds only what arrived with its header.
      buffer_(limits.header + 65536) {}

Session::~Session() {
  owner_.Ended(*this);
}

template <typename Next>
auto Session::Then(Next next) {
  return [self = shared_from_this(), next](const Error& error, size_t = 0) {
    if (!error) (self.get()->*next)();
  };
}

void Session::Start() {
  beast::get_lowest_layer(stream_).expires_after(limits_.first_request);
  stream_.async_handshake(asio::ssl::stream_base::server,
                          [self = shared_from_this()](const Error& error) { self->Shaken(error); });
}

void Session::Shaken(const Error& error) {
  if (!error) return ReadHeader();
  if (IsAboutCertificate(error)) owner_.CertificateRefused(error);
}

void Session::ReadHeader() {
  if (draining_) return;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(limits_.header));
  parser_->body_limit(limits_.body);
  standing_.waiting = true;
  beast::get_lowest_layer(stream_).expires_after(standing_.reviewed ? limits_.idle
                                                                    : limits_.first_request);
  http::async_read_header(stream_, buffer_, *parser_,
                          [self = shared_from_this()](const Error& error, size_t) {
                            self->standing_.waiting = false;
                            return error ? self->Refuse(error) : self->ReadBody();
                          });
}

void Session::ReadBody() {
  if (const size_t room = BodyRoom(); room > 0) {
    owner_.MakeRoomForBody(room);
    standing_.body_room = room;
    standing_.body_since = Standing::Clock::now();
  }
  beast::get_lowest_layer(stream_).expires_after(limits_.body_time);
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](const Error& error, size_t) {
                     if (error) return self->Refuse(error);
                     self->Answer(self->parser_->get());
                   });
}

// A body without an announced length may grow up to the limit.
size_t Session::BodyRoom() const {
  const auto length = parser_->content_length_remaining();
  if (length) return std::min(static_cast<size_t>(*length), limits_.body);
  return parser_->chunked() ? limits_.body : 0;
}

void Session::Refuse(const Error& error) {
  if (error == http::error::body_limit) {
    return Write({413, "text/plain", "the request is too large\n"}, false);
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return Write({431, "text/plain", "the header is too large\n"}, false);
  }
  if (error == beast::error::timeout) return;
  // Only errors of this category mean that the bytes are not HTTP; the others are errors of the
  // connection.
  if (error.category() == make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message) {
    return Write({400, "text/plain", "the request is not HTTP/1.1\n"}, false);
  }
  if (error == http::error::end_of_stream) Close();
}

void Session::Answer(const Request& request) {
  const auto view = [](beast::string_view text) {
    return std::string_view(text.data(), text.size());
  };
  HttpReply reply = Serve({view(request.method_string()), view(request.target()),
                           view(request[http::field::content_type]), request.body()},
                          /*ready=*/!owner_.leaving());
  if (reply.review) {
    standing_.reviewed = true;
    standing_.proven_at = Standing::Clock::now();
  }
  Write(std::move(reply), request.keep_alive() && !draining_ && !owner_.leaving());
}

void Session::Write(HttpReply reply, bool keep_alive) {
  response_ = Response(static_cast<http::status>(reply.status), 11);
  response_.set(http::field::content_type,
                beast::string_view(reply.content_type.data(), reply.content_type.size()));
  response_.body() = std::move(reply.body);
  response_.keep_alive(keep_alive);
  response_.prepare_payload();
  // Frees the request, which may be large.
  parser_.reset();
  standing_.body_room = 0;
  beast::get_lowest_layer(stream_).expires_after(limits_.body_time);
  http::async_write(stream_, response_, Then(keep_alive ? &Session::ReadHeader : &Session::Close));
}

void Session::Drain() {
  draining_ = true;
  if (standing_.waiting) beast::get_lowest_layer(stream_).cancel();
}

void Session::Abort() {
  standing_.closed = true;
  standing_.body_room = 0;
  beast::get_lowest_layer(stream_).close();
}

void Session::Close() {
  // A server that is ending does not wait for the client to close.
  if (draining_) return;
  standing_.waiting = true;
  beast::get_lowest_layer(stream_).expires_after(kGoodbye);
  stream_.async_shutdown([self = shared_from_this()](const Error&) { self->Discard(); });
}

void Session::Discard() {
  // The read needs no deadline of its own: the one that Close has set covers it.
  beast::get_lowest_layer(stream_).async_read_some(asio::buffer(discarded_),
                                                   Then(&Session::Discard));
}

bool LessUseful(const Standing& a, const Standing& b) {
  const auto rank = [](const Standing& standing) {
    if (!standing.reviewed) return 0;
    return standing.waiting ? 1 : 2;
  };
  return std::tuple(rank(a), a.proven_at) < std::tuple(rank(b), b.proven_at);
}

}  // namespace resmgr::webhook
