// SPDX-License-Identifier: Apache-2.0
#include "test/support/api_server/byte_stream.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

namespace resmgr::test {
namespace {

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
  bool PeerIsKnown() const override { return false; }

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
  bool PeerIsKnown() const override {
    return SSL_get0_peer_certificate(ssl_.get()) != nullptr &&
           SSL_get_verify_result(ssl_.get()) == X509_V_OK;
  }

 private:
  const std::shared_ptr<SSL> ssl_;
};

}  // namespace

std::unique_ptr<ByteStream> ByteStream::Open(int fd, SSL_CTX* tls) {
  if (tls == nullptr) return std::make_unique<PlainStream>(fd);
  const std::shared_ptr<SSL> ssl(SSL_new(tls), SSL_free);
  if (ssl == nullptr || SSL_set_fd(ssl.get(), fd) != 1 || SSL_accept(ssl.get()) != 1) {
    return nullptr;
  }
  return std::make_unique<TlsStream>(ssl);
}

}  // namespace resmgr::test
