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

// The other side of the server: one TLS connection to 127.0.0.1, plain enough to send what no
// proper client would. Blocks, at most for the timeout with each system call. Does not check the
// certificate, but tells whose it is. Thread-compatible.
class HttpsClient {
 public:
  struct Response {
    unsigned status = 0;
    std::string header{};
    std::string body{};
  };

  // `max_version`: TLS1_2_VERSION and the like; 0 for the newest. Unavailable when there is no
  // connection or no agreement.
  static StatusOr<HttpsClient> Connect(uint16_t port,
                                       std::chrono::milliseconds timeout = std::chrono::seconds(10),
                                       int max_version = 0);

  // One request and its answer, on this connection, which stays open when the server agrees.
  StatusOr<Response> Send(std::string_view method, std::string_view target,
                          std::string_view content_type, std::string_view body);
  StatusOr<Response> PostReview(std::string_view review);

  Status Write(std::string_view bytes);
  // Unavailable when the connection ends before the answer does.
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
