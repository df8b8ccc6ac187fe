// SPDX-License-Identifier: Apache-2.0
#include "test/support/api_server/http_server.h"

#include <array>
#include <csignal>
#include <optional>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"

namespace resmgr::test {
namespace {

constexpr size_t kMaxRequest = 16 << 20;

template <typename T>
std::shared_ptr<T> ReadPem(const std::string& text, T* (*read)(BIO*, T**, pem_password_cb*, void*),
                           void (*release)(T*)) {
  const std::shared_ptr<BIO> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
                                 BIO_free_all);
  return std::shared_ptr<T>(read(bio.get(), nullptr, nullptr, nullptr), release);
}

std::shared_ptr<SSL_CTX> MakeContext(const HttpServer::Tls& tls) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  const auto certificate = ReadPem<X509>(tls.certificate, PEM_read_bio_X509, X509_free);
  const auto key = ReadPem<EVP_PKEY>(tls.key, PEM_read_bio_PrivateKey, EVP_PKEY_free);
  const auto ca = ReadPem<X509>(tls.ca, PEM_read_bio_X509, X509_free);
  SSL_CTX_use_certificate(context.get(), certificate.get());
  SSL_CTX_use_PrivateKey(context.get(), key.get());
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), ca.get());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

std::string UrlDecode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      decoded += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

// Reads the requests of one connection, one after the other.
class RequestReader {
 public:
  explicit RequestReader(ByteStream& stream) : stream_(stream) {}

  std::optional<HttpServerRequest> Next() {
    const auto head = Until("\r\n\r\n");
    if (!head) return std::nullopt;
    HttpServerRequest request;
    const std::vector<std::string_view> lines = Split(*head, '\n');
    const std::vector<std::string_view> first = Split(Trim(lines[0]), ' ');
    if (first.size() != 3) return std::nullopt;
    request.method = first[0];
    ReadTarget(first[1], request);
    for (size_t i = 1; i < lines.size(); ++i) {
      const size_t colon = lines[i].find(':');
      if (colon == std::string_view::npos) continue;
      request.headers[ToLower(lines[i].substr(0, colon))] = Trim(lines[i].substr(colon + 1));
    }
    if (const auto length = request.headers.find("content-length");
        length != request.headers.end()) {
      const auto body = Take(ParseUint(length->second).value_or(0));
      if (!body) return std::nullopt;
      request.body = *body;
    }
    request.client = stream_.PeerName();
    return request;
  }

 private:
  static void ReadTarget(std::string_view target, HttpServerRequest& request) {
    const size_t mark = target.find('?');
    request.path = UrlDecode(target.substr(0, mark));
    if (mark == std::string_view::npos) return;
    for (const std::string_view pair : Split(target.substr(mark + 1), '&')) {
      const size_t equals = pair.find('=');
      request.query[UrlDecode(pair.substr(0, equals))] =
          equals == std::string_view::npos ? "" : UrlDecode(pair.substr(equals + 1));
    }
  }

  bool More() {
    std::array<char, 16384> bytes{};
    const ssize_t count = stream_.Read(bytes.data(), bytes.size());
    if (count <= 0 || buffer_.size() > kMaxRequest) return false;
    buffer_.append(bytes.data(), static_cast<size_t>(count));
    return true;
  }
  std::optional<std::string> Until(std::string_view end) {
    size_t at = 0;
    while ((at = buffer_.find(end)) == std::string::npos) {
      if (!More()) return std::nullopt;
    }
    return Take(at + end.size());
  }
  std::optional<std::string> Take(size_t size) {
    while (buffer_.size() < size) {
      if (!More()) return std::nullopt;
    }
    std::string taken = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return taken;
  }

  ByteStream& stream_;
  std::string buffer_;
};

class Reply : public HttpServerReply {
 public:
  Reply(ByteStream& stream, int fd, const std::atomic<bool>& ending)
      : stream_(stream), fd_(fd), ending_(ending) {}

  bool Send(int status, std::string_view body,
            const std::map<std::string, std::string>& headers) override {
    std::string head =
        fmt::format("HTTP/1.1 {} Reply\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
                    status, body.size());
    for (const auto& [name, value] : headers)
      head += fmt::format("{}: {}\r\n", name, value);
    return Put(head + "\r\n" + std::string(body));
  }
  bool SendPiece(std::string_view piece) override {
    if (!begun_ && !Begin()) return false;
    return piece.empty() || Put(fmt::format("{:x}\r\n{}\r\n", piece.size(), piece));
  }
  bool EndPieces() override {
    if (!begun_ && !Begin()) return false;
    return Put("0\r\n\r\n");
  }
  void Cut() override {
    good_ = false;
    ::shutdown(fd_, SHUT_RDWR);
  }
  bool PeerIsThere() override {
    pollfd ready{.fd = fd_, .events = POLLRDHUP, .revents = 0};
    if (::poll(&ready, 1, 0) > 0) good_ = false;
    return good_ && !ending_;
  }

 private:
  bool Begin() {
    begun_ = true;
    return Put(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
  }
  bool Put(const std::string& bytes) {
    good_ = good_ && !ending_ && stream_.Write(bytes);
    return good_;
  }

  ByteStream& stream_;
  const int fd_;
  const std::atomic<bool>& ending_;
  bool begun_ = false;
  bool good_ = true;
};

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(int fd) : fd_(fd) {}

  ssize_t Read(char* buffer, size_t size) override { return ::recv(fd_, buffer, size, 0); }
  bool Write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  std::string PeerName() const override { return ""; }

 private:
  const int fd_;
};

class TlsStream : public ByteStream {
 public:
  explicit TlsStream(std::shared_ptr<SSL> ssl) : ssl_(std::move(ssl)) {}

  ssize_t Read(char* buffer, size_t size) override {
    const int count = SSL_read(ssl_.get(), buffer, static_cast<int>(size));
    return count < 0 ? -1 : count;
  }
  bool Write(std::string_view bytes) override {
    return bytes.empty() || SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  std::string PeerName() const override {
    const X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
    if (certificate == nullptr || SSL_get_verify_result(ssl_.get()) != X509_V_OK) return "";
    std::array<char, 256> name{};
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(),
                              static_cast<int>(name.size()));
    return name.data();
  }

 private:
  const std::shared_ptr<SSL> ssl_;
};

}  // namespace

Status HttpServer::Start(int port, const Tls* tls) {
  ending_ = false;
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  tls_ = tls == nullptr ? nullptr : MakeContext(*tls);
  if (port == 0) {
    RESMGR_ASSIGN_OR_RETURN(reserved_, ReservedPort::Create());
    port = reserved_->number();
  }
  listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* plain = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(listener_.get(), plain, sizeof(address)) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0) {
    return Unavailable("port {} of 127.0.0.1 cannot be had: {}", port, std::strerror(errno));
  }
  port_ = port;
  accept_thread_ = std::thread([this] { Accept(); });
  return OkStatus();
}

void HttpServer::Stop() {
  if (!accept_thread_.joinable()) return;
  ending_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);
  accept_thread_.join();
  listener_.Reset();
  CutConnections();
  for (Connection& connection : connections_)
    connection.thread.join();
  connections_.clear();
}

void HttpServer::CutConnections() {
  const std::lock_guard lock(mutex_);
  for (Connection& connection : connections_)
    ::shutdown(connection.fd.get(), SHUT_RDWR);
}

void HttpServer::Accept() {
  while (!ending_) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) continue;
    const int yes = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    Reap();
    const std::lock_guard lock(mutex_);
    Connection& connection = connections_.emplace_back();
    connection.fd = std::move(fd);
    connection.thread = std::thread([this, &connection] { Serve(connection); });
  }
}

void HttpServer::Reap() {
  const std::lock_guard lock(mutex_);
  for (auto at = connections_.begin(); at != connections_.end();) {
    if (!at->ended) {
      ++at;
      continue;
    }
    at->thread.join();
    at = connections_.erase(at);
  }
}

void HttpServer::Serve(Connection& connection) {
  const int fd = connection.fd.get();
  if (const auto stream = ByteStream::Open(fd, tls_.get())) {
    RequestReader reader(*stream);
    while (!ending_) {
      const auto request = reader.Next();
      if (!request) break;
      Reply reply(*stream, fd, ending_);
      handler_(*request, reply);
      if (!reply.PeerIsThere()) break;
    }
  }
  ::shutdown(fd, SHUT_RDWR);
  connection.ended = true;
}

std::unique_ptr<ByteStream> ByteStream::Open(int fd, SSL_CTX* tls) {
  if (tls == nullptr) return std::make_unique<PlainStream>(fd);
  const std::shared_ptr<SSL> ssl(SSL_new(tls), SSL_free);
  if (ssl == nullptr || SSL_set_fd(ssl.get(), fd) != 1 || SSL_accept(ssl.get()) != 1) {
    return nullptr;
  }
  return std::make_unique<TlsStream>(ssl);
}

}  // namespace resmgr::test
