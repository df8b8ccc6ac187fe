// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include "pkg/base/status.h"

namespace resmgr::webhook {

// A connection keeps the context that was current when it began.
using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

// Whether the server's own certificate has expired, or is not valid yet.
bool IsOutOfDate(const TlsContext& context);

// The server's certificate, from two PEM files that may be renewed at any time, one after the other
// or by swapping links, as the kubelet does with secrets. Thread-compatible. Both calls block on
// the disk.
class CertificateFiles {
 public:
  // The first certificate in `certificate_file` is the server's; those that issued it may follow.
  // The key is not encrypted.
  CertificateFiles(std::string certificate_file, std::string key_file);

  // A context for TLS 1.2 or later with the files' present contents. kUnavailable when they cannot
  // be read, are malformed, or do not belong together; the message names the file.
  StatusOr<TlsContext> Load();

  // Whether the files have changed since the last Load, successful or not.
  bool Changed() const;

 private:
  struct Content {
    std::string certificate{};
    std::string key{};
    friend bool operator==(const Content&, const Content&) = default;
  };

  StatusOr<Content> Read() const;

  const std::string certificate_file_;
  const std::string key_file_;
  // Empty if the files could not be read.
  Content tried_;
};

}  // namespace resmgr::webhook
