// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/types.h>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::webhook {

// One TLS connection to the server on 127.0.0.1, which can also send malformed requests. Blocks, at
// most for the timeout with each system call. Tells the certificate's name.
// Thread-compatible.
class HttpsClient {
 public:
  struct Response {
    unsigned status = 0;
    std::string header{};
    std::string body{};
  };

  // `max_version`: TLS1_2_VERSION and the like; 0 for the newest. `verify`: the certificate has to
  // be signed by an authority of none, so that the handshake fails. kUnavailable when the
  // connection or the handshake fails.
  static StatusOr<HttpsClient> Connect(uint16_t port,
                                       std::chrono::milliseconds timeout = std::chrono::seconds(10),
                                       int max_version = 0, bool verify = false);

  // Sends a request and reads its answer; the connection stays open if the server agrees.
  StatusOr<Response> Send(std::string_view method, std::string_view target,
                          std::string_view content_type, std::string_view body);
  StatusOr<Response> PostReview(std::string_view review);

  Status Write(std::string_view bytes);
  // kUnavailable when the connection ends before the answer does.
  StatusOr<Response> ReadResponse();

  // The common name in the server's certificate.
  std::string CertificateName() const;

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const;
  };

  HttpsClient() = default;

  UniqueFd fd_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::string unread_;
};

}  // namespace resmgr::webhook
