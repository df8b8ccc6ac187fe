// SPDX-License-Identifier: Apache-2.0
#include "webhook/testing/https_client.h"

#include <array>
#include <csignal>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "pkg/base/parse.h"

namespace resmgr::webhook {

namespace {

constexpr std::string_view kHeaderEnd = "\r\n\r\n";

UniqueFd ConnectTcp(uint16_t port, std::chrono::milliseconds timeout) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  timeval limit{};
  limit.tv_sec = timeout.count() / 1000;
  limit.tv_usec = timeout.count() % 1000 * 1000;
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* any = reinterpret_cast<const sockaddr*>(&address);
  return connect(fd.get(), any, sizeof(address)) == 0 ? std::move(fd) : UniqueFd();
}

// The length in the header, 0 without one.
size_t ContentLength(std::string_view header) {
  for (const std::string_view line : Split(header, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (!EqualsIgnoreCase(Trim(line.substr(0, colon)), "content-length")) continue;
    return ParseUint(Trim(line.substr(colon + 1))).value_or(0);
  }
  return 0;
}

}  // namespace

void HttpsClient::FreeSsl::operator()(SSL* ssl) const {
  SSL_free(ssl);
}

StatusOr<HttpsClient> HttpsClient::Connect(uint16_t port, std::chrono::milliseconds timeout,
                                           int max_version, bool verify) {
  // Without this a write into a connection that the server has closed would end the process:
  // OpenSSL does not use MSG_NOSIGNAL.
  signal(SIGPIPE, SIG_IGN);
  HttpsClient client;
  client.fd_ = ConnectTcp(port, timeout);
  if (!client.fd_.valid()) return Unavailable("no connection to port {}", port);
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  if (max_version != 0) {
    // Tests may use versions below the library's default level.
    SSL_CTX_set_security_level(context.get(), 0);
    SSL_CTX_set_min_proto_version(context.get(), max_version);
    SSL_CTX_set_max_proto_version(context.get(), max_version);
  }
  if (verify) SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  client.ssl_.reset(SSL_new(context.get()));
  SSL_set_fd(client.ssl_.get(), client.fd_.get());
  if (SSL_connect(client.ssl_.get()) != 1) return Unavailable("no TLS with port {}", port);
  return client;
}

Status HttpsClient::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t written = 0;
    if (SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written) != 1) {
      return Unavailable("the server does not read");
    }
    bytes.remove_prefix(written);
  }
  return OkStatus();
}

StatusOr<HttpsClient::Response> HttpsClient::ReadResponse() {
  size_t size = std::string::npos;  // size of the whole response, once it is known
  size_t body_at = 0;
  while (size == std::string::npos || unread_.size() < size) {
    std::array<char, 16384> bytes;
    size_t count = 0;
    if (SSL_read_ex(ssl_.get(), bytes.data(), bytes.size(), &count) != 1) {
      return Unavailable("the server ended the connection");
    }
    unread_.append(bytes.data(), count);
    const size_t end = unread_.find(kHeaderEnd);
    if (size != std::string::npos || end == std::string::npos) continue;
    body_at = end + kHeaderEnd.size();
    size = body_at + ContentLength(std::string_view(unread_).substr(0, end));
  }
  Response response;
  response.header = unread_.substr(0, body_at);
  response.body = unread_.substr(body_at, size - body_at);
  unread_.erase(0, size);
  // The status follows "HTTP/1.1 ".
  response.status = static_cast<unsigned>(ParseUint(response.header.substr(9, 3)).value_or(0));
  return response;
}

StatusOr<HttpsClient::Response> HttpsClient::Send(std::string_view method, std::string_view target,
                                                  std::string_view content_type,
                                                  std::string_view body) {
  RESMGR_RETURN_IF_ERROR(Write(fmt::format(
      "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n{}",
      method, target, content_type, body.size(), body)));
  return ReadResponse();
}

StatusOr<HttpsClient::Response> HttpsClient::PostReview(std::string_view review) {
  return Send("POST", "/mutate?timeout=2s", "application/json", review);
}

std::string HttpsClient::CertificateName() const {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      SSL_get1_peer_certificate(ssl_.get()), &X509_free);
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name.data(),
                            static_cast<int>(name.size()));
  return name.data();
}

}  // namespace resmgr::webhook
