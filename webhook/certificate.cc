// SPDX-License-Identifier: Apache-2.0
#include "webhook/certificate.h"

#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "pkg/sys/files.h"

namespace resmgr::webhook {

namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;

// Limit in bytes; certificates with their chain have a few KiB.
constexpr size_t kMaxSize = size_t{1} << 20;

// Returns kUnavailable, the code of start-up problems, for every error of the file system.
StatusOr<std::string> ReadPem(const std::string& file) {
  auto text = ReadFile(file, kMaxSize);
  if (!text.ok()) return Unavailable("{}", Message(text.status()));
  return text;
}

Status Unusable(const std::string& file, std::string_view what,
                const boost::system::error_code& error) {
  return Unavailable("{}: it holds no {} in PEM form ({})", file, what, error.message());
}

}  // namespace

bool IsOutOfDate(const TlsContext& context) {
  const X509* const certificate = SSL_CTX_get0_certificate(context->native_handle());
  return certificate != nullptr && (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0 ||
                                    X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0);
}

CertificateFiles::CertificateFiles(std::string certificate_file, std::string key_file)
    : certificate_file_(std::move(certificate_file)), key_file_(std::move(key_file)) {}

StatusOr<CertificateFiles::Content> CertificateFiles::Read() const {
  Content content;
  RESMGR_ASSIGN_OR_RETURN(content.certificate, ReadPem(certificate_file_));
  RESMGR_ASSIGN_OR_RETURN(content.key, ReadPem(key_file_));
  return content;
}

StatusOr<TlsContext> CertificateFiles::Load() {
  tried_ = Content{};
  RESMGR_ASSIGN_OR_RETURN(tried_, Read());
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  boost::system::error_code error;
  context->set_options(ssl::context::default_workarounds | ssl::context::no_compression, error);
  if (error || SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION) != 1) {
    return Internal("TLS cannot be limited to version 1.2 and later");
  }
  // The key comes first, so that a certificate that does not match it is reported by the check
  // below.
  context->use_private_key(asio::buffer(tried_.key), ssl::context::pem, error);
  if (error) return Unusable(key_file_, "private key", error);
  context->use_certificate_chain(asio::buffer(tried_.certificate), error);
  if (error) return Unusable(certificate_file_, "certificate", error);
  if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return Unavailable("{}: it is not the key of {}", key_file_, certificate_file_);
  }
  return context;
}

bool CertificateFiles::Changed() const {
  return Read().value_or(Content{}) != tried_;
}

}  // namespace resmgr::webhook
