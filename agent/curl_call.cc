// SPDX-License-Identifier: Apache-2.0
#include "agent/curl_call.h"

#include <algorithm>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace resmgr::agent {
namespace {

constexpr long kYes = 1;
constexpr long kNo = 0;
constexpr long kKeepAliveIdle = 30;      // seconds
constexpr long kKeepAliveInterval = 10;  // seconds
constexpr unsigned kUserTimeout = 30'000;
constexpr int kOk = 200;

// The connection counts as lost when sent bytes are not acknowledged for this long.
int OnSocket(void* /*unused*/, curl_socket_t fd, curlsocktype /*purpose*/) {
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeout, sizeof(kUserTimeout));
  return CURL_SOCKOPT_OK;
}

void SetPem(CURL* easy, const Pem& pem, CURLoption file_option, CURLoption blob_option) {
  if (!pem.data.empty()) {
    std::string text = pem.data;
    curl_blob blob{.data = text.data(), .len = text.size(), .flags = CURL_BLOB_COPY};
    curl_easy_setopt(easy, blob_option, &blob);
  } else if (!pem.file.empty()) {
    curl_easy_setopt(easy, file_option, pem.file.c_str());
  }
}

bool IsHeaderValue(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

CurlCall::CurlCall(HttpRequest request, HttpTransport::Data data, HttpTransport::Done done)
    : request_(std::move(request)),
      data_(std::move(data)),
      done_(std::move(done)),
      easy_(curl_easy_init()),
      error_(CURL_ERROR_SIZE, '\0') {}

CurlCall::~CurlCall() {
  curl_easy_cleanup(easy_);
  curl_slist_free_all(headers_);
  curl_slist_free_all(connect_to_);
}

Status CurlCall::Prepare(const ClusterAccess& access, const Credential& credential) {
  if (easy_ == nullptr) return Internal("libcurl gives no handle");
  const std::string url = Url(access);
  curl_easy_setopt(easy_, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, kYes);
  curl_easy_setopt(easy_, CURLOPT_USERAGENT, "cri-resmgr-agent");
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_.data());
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &CurlCall::OnBody);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &CurlCall::OnHeader);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, static_cast<long>(request_.timeout.count()));
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPALIVE, kYes);
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPIDLE, kKeepAliveIdle);
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPINTVL, kKeepAliveInterval);
  curl_easy_setopt(easy_, CURLOPT_SOCKOPTFUNCTION, &OnSocket);
  if (!access.proxy_url.empty()) {
    curl_easy_setopt(easy_, CURLOPT_PROXY, access.proxy_url.c_str());
  }
  if (!access.user.username.empty()) {
    curl_easy_setopt(easy_, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    curl_easy_setopt(easy_, CURLOPT_USERNAME, access.user.username.c_str());
    curl_easy_setopt(easy_, CURLOPT_PASSWORD, access.user.password.c_str());
  }
  if (request_.method != "GET") {
    curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request_.body.size()));
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, request_.body.data());
  }
  PrepareTls(access, credential);
  return PrepareHeaders(credential);
}

Status CurlCall::PrepareHeaders(const Credential& credential) {
  headers_ = curl_slist_append(headers_, ("Accept: " + request_.accept).c_str());
  // Without this libcurl asks first whether it may send a body of more than a MiB.
  headers_ = curl_slist_append(headers_, "Expect:");
  if (!request_.content_type.empty()) {
    headers_ = curl_slist_append(headers_, ("Content-Type: " + request_.content_type).c_str());
  }
  if (!credential.token.empty()) {
    if (!IsHeaderValue(credential.token)) {
      return FailedPrecondition("the bearer token has invalid characters");
    }
    headers_ = curl_slist_append(headers_, ("Authorization: Bearer " + credential.token).c_str());
  }
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
  return OkStatus();
}

void CurlCall::PrepareTls(const ClusterAccess& access, const Credential& credential) {
  if (!access.ca.empty()) {
    SetPem(easy_, access.ca, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB);
    // libcurl trusts the certificates of its built-in directory as well, unless it is told not to.
    curl_easy_setopt(easy_, CURLOPT_CAPATH, nullptr);
    // A replaced CA file is used from the next connection on.
    curl_easy_setopt(easy_, CURLOPT_CA_CACHE_TIMEOUT, 0L);
  }
  SetPem(easy_, credential.certificate, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB);
  SetPem(easy_, credential.key, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB);
  curl_easy_setopt(easy_, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (access.insecure) {
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYPEER, kNo);
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYHOST, kNo);
  }
}

// libcurl checks the certificate against the host of the URL. If tls_server_name is another one,
// the URL has that name and the connection is directed to the real address.
std::string CurlCall::Url(const ClusterAccess& access) {
  if (access.tls_server_name.empty()) return access.server + request_.target;
  CURLU* url = curl_url();
  char* host = nullptr;
  char* port = nullptr;
  std::string result = access.server + request_.target;
  if (curl_url_set(url, CURLUPART_URL, result.c_str(), 0) == CURLUE_OK &&
      curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
      curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK) {
    const std::string target =
        access.tls_server_name + ":" + port + ":" + std::string(host) + ":" + port;
    connect_to_ = curl_slist_append(connect_to_, target.c_str());
    curl_easy_setopt(easy_, CURLOPT_CONNECT_TO, connect_to_);
    curl_url_set(url, CURLUPART_HOST, access.tls_server_name.c_str(), 0);
    char* whole = nullptr;
    if (curl_url_get(url, CURLUPART_URL, &whole, 0) == CURLUE_OK) result = whole;
    curl_free(whole);
  }
  curl_free(host);
  curl_free(port);
  curl_url_cleanup(url);
  return result;
}

int CurlCall::HttpStatus() const {
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

size_t CurlCall::OnBody(char* bytes, size_t size, size_t count, void* self) {
  auto& call = *static_cast<CurlCall*>(self);
  const size_t length = size * count;
  if (call.data_ != nullptr && call.HttpStatus() == kOk) {
    call.pieces_.append(bytes, length);
    return length;
  }
  if (call.body_.size() + length > HttpTransport::kMaxBody) {
    call.too_long_ = true;
    return 0;  // which makes libcurl give up
  }
  call.body_.append(bytes, length);
  return length;
}

size_t CurlCall::OnHeader(char* /*bytes*/, size_t size, size_t count, void* self) {
  static_cast<CurlCall*>(self)->first_byte_timer.reset();
  return size * count;
}

void CurlCall::Finish(CURLcode code) {
  first_byte_timer.reset();
  if (too_long_) {
    result_ =
        ResourceExhausted("the API server's reply has more than {} bytes", HttpTransport::kMaxBody);
    return;
  }
  if (code != CURLE_OK) {
    const std::string_view detail = error_.c_str();
    const std::string message = fmt::format(
        "API server: {}", detail.empty() ? std::string_view(curl_easy_strerror(code)) : detail);
    result_ = MakeStatus(
        code == CURLE_OPERATION_TIMEDOUT ? StatusCode::kDeadlineExceeded : StatusCode::kUnavailable,
        message);
    return;
  }
  HttpReply reply{.status = HttpStatus(), .body = std::move(body_), .retry_after = {}};
  curl_off_t wait = 0;
  curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &wait);
  if (wait > 0) reply.retry_after = std::chrono::seconds(wait);
  result_ = std::move(reply);
}

}  // namespace resmgr::agent
