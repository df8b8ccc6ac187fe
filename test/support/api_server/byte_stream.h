// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include <sys/types.h>

typedef struct ssl_ctx_st SSL_CTX;  // as OpenSSL declares it

namespace resmgr::test {

// A connection that blocks: plain, or with TLS on it. The fd stays the caller's.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // 0 at the end, -1 on errors.
  virtual ssize_t Read(char* buffer, size_t size) = 0;
  virtual bool Write(std::string_view bytes) = 0;
  // Whether the peer showed a valid certificate.
  virtual bool PeerIsKnown() const = 0;

  // Opens a plain stream without a context; nullptr if the handshake fails.
  static std::unique_ptr<ByteStream> Open(int fd, SSL_CTX* tls);
};

}  // namespace resmgr::test
