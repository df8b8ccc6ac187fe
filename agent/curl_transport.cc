// SPDX-License-Identifier: Apache-2.0
#include "agent/curl_transport.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "agent/credentials.h"
#include "pkg/sys/clock.h"

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

void SetPem(CURL* easy, CURLoption option, std::string text) {
  if (text.empty()) return;
  curl_blob blob{.data = text.data(), .len = text.size(), .flags = CURL_BLOB_COPY};
  curl_easy_setopt(easy, option, &blob);
}

bool IsHeaderValue(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

// One request as libcurl knows it: its options, and the received part of the reply. Data from
// libcurl is kept here until it may be passed on, since libcurl's callbacks may not call libcurl.
// Thread-compatible.
class CurlCall {
 public:
  CurlCall(HttpRequest request, HttpTransport::Data data, HttpTransport::Done done);
  CurlCall(const CurlCall&) = delete;
  CurlCall& operator=(const CurlCall&) = delete;
  ~CurlCall();

  // Sets all options; sends nothing yet. kFailedPrecondition: a malformed token.
  Status Prepare(const ClusterAccess& access, const Credential& credential);
  CURL* easy() const { return easy_; }

  // Fires when the reply has not begun in time.
  EventLoop::HandlePtr first_byte_timer{};
  std::chrono::milliseconds first_byte_timeout() const { return request_.first_byte_timeout; }

  // Called when libcurl has finished the request.
  void Finish(CURLcode code);
  void Fail(const Status& status) { result_ = status; }
  bool finished() const { return result_.has_value(); }
  bool has_news() const { return !pieces_.empty() || finished(); }

  // Takes the pieces that have not been passed on.
  std::string TakePieces() { return std::exchange(pieces_, {}); }
  StatusOr<HttpReply> TakeResult() { return *std::move(result_); }
  // A copy, so that the receiver may destroy this object.
  HttpTransport::Data data() const { return data_; }
  HttpTransport::Done done() const { return done_; }

 private:
  static size_t OnBody(char* bytes, size_t size, size_t count, void* self);
  static size_t OnHeader(char* bytes, size_t size, size_t count, void* self);
  Status PrepareHeaders(const Credential& credential);
  void PrepareTls(const ClusterAccess& access, const Credential& credential);
  std::string Url(const ClusterAccess& access);
  int HttpStatus() const;

  HttpRequest request_;
  HttpTransport::Data data_;
  HttpTransport::Done done_;
  CURL* easy_;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  std::string error_;  // libcurl writes into it
  std::string pieces_;
  std::string body_;
  bool too_long_ = false;
  std::optional<StatusOr<HttpReply>> result_;
};

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
  // A request that is given up leaves the thread that looks up its host's name behind. Else libcurl
  // would wait for this thread on the loop, as long as a name server does not answer.
  curl_easy_setopt(easy_, CURLOPT_QUICK_EXIT, kYes);
  curl_easy_setopt(easy_, CURLOPT_USERAGENT, kAgentName.data());
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
  // A proxy's answer is not the server's.
  curl_easy_setopt(easy_, CURLOPT_SUPPRESS_CONNECT_HEADERS, kYes);
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
  // Without this header libcurl first asks the server whether it may send a body of more than a
  // MiB.
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
  if (!credential.authorities.empty()) {
    SetPem(easy_, CURLOPT_CAINFO_BLOB, credential.authorities);
    // Without this libcurl would also trust the certificates of its built-in directory.
    curl_easy_setopt(easy_, CURLOPT_CAPATH, nullptr);
  }
  // As texts, so that libcurl makes no request with another certificate on a connection that has
  // one already: an API server refuses requests on connections whose certificate has expired.
  SetPem(easy_, CURLOPT_SSLCERT_BLOB, credential.certificate);
  SetPem(easy_, CURLOPT_SSLKEY_BLOB, credential.key);
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
    return 0;  // makes libcurl give up
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

// libcurl is initialized once per process and never cleaned up, since other code may use it, too.
bool InitializeCurl() {
  static const bool kInitialized = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return kInitialized;
}

}  // namespace

class CurlTransport::Impl {
 public:
  Impl(EventLoop& loop, ClusterAccess access)
      : loop_(loop),
        access_(std::move(access)),
        runner_(loop),
        credentials_(loop, access_, runner_),
        multi_(curl_multi_init()) {
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &Impl::OnSocket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &Impl::OnTimer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    while (!calls_.empty())
      Remove(calls_.begin()->first);
    curl_multi_cleanup(multi_);
  }

  std::unique_ptr<Call> Send(HttpRequest request, Data data, Done done) {
    const uint64_t id = ++last_id_;
    calls_[id] = std::make_unique<CurlCall>(std::move(request), std::move(data), std::move(done));
    credentials_.Get([this, id](const StatusOr<Credential>& credential) { Begin(id, credential); });
    return std::make_unique<Handle>(*this, id);
  }

 private:
  // The caller's end of a Send.
  class Handle : public Call {
   public:
    Handle(Impl& impl, uint64_t id) : impl_(impl), id_(id) {}
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() override { impl_.Remove(id_); }

   private:
    Impl& impl_;
    const uint64_t id_;
  };

  void Remove(uint64_t id) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    if (found->second->easy() != nullptr) curl_multi_remove_handle(multi_, found->second->easy());
    calls_.erase(found);
  }

  void Begin(uint64_t id, const StatusOr<Credential>& credential) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;  // given up before there were credentials
    CurlCall& call = *found->second;
    const Status status =
        credential.ok() ? call.Prepare(access_, *credential) : credential.status();
    if (!status.ok()) {
      call.Fail(status);
      DeliverLater();
      return;
    }
    call.first_byte_timer = loop_.After(call.first_byte_timeout(), [this, id] {
      if (const auto late = calls_.find(id); late != calls_.end()) {
        curl_multi_remove_handle(multi_, late->second->easy());
        late->second->Fail(DeadlineExceeded("API server: no reply in time"));
        Deliver();
      }
    });
    curl_multi_add_handle(multi_, call.easy());
  }

  static int OnSocket(CURL* /*easy*/, curl_socket_t fd, int what, void* self, void* /*unused*/) {
    static_cast<Impl*>(self)->Watch(fd, what);
    return 0;
  }
  static int OnTimer(CURLM* /*multi*/, long timeout_ms, void* self) {
    auto& impl = *static_cast<Impl*>(self);
    impl.timer_.reset();
    if (timeout_ms >= 0) {
      impl.timer_ = impl.loop_.After(std::chrono::milliseconds(timeout_ms),
                                     [&impl] { impl.Act(CURL_SOCKET_TIMEOUT, 0); });
    }
    return 0;
  }

  void Watch(curl_socket_t fd, int what) {
    if (what == CURL_POLL_REMOVE) {
      sockets_.erase(fd);
      return;
    }
    int events = 0;
    if ((what & CURL_POLL_IN) != 0) events |= EventLoop::kReadable;
    if ((what & CURL_POLL_OUT) != 0) events |= EventLoop::kWritable;
    if (const auto found = sockets_.find(fd); found != sockets_.end()) {
      EventLoop::SetEvents(*found->second, events);
      return;
    }
    sockets_[fd] = loop_.Watch(fd, events, [this, fd](int ready) {
      const int flags = ((ready & EventLoop::kReadable) != 0 ? CURL_CSELECT_IN : 0) |
                        ((ready & EventLoop::kWritable) != 0 ? CURL_CSELECT_OUT : 0);
      Act(fd, flags);
    });
  }

  void Act(curl_socket_t fd, int flags) {
    int running = 0;
    curl_multi_socket_action(multi_, fd, flags, &running);
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      CURL* easy = message->easy_handle;
      char* call = nullptr;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call);
      curl_multi_remove_handle(multi_, easy);
      static_cast<CurlCall*>(static_cast<void*>(call))->Finish(code);
    }
    Deliver();
  }

  void DeliverLater() {
    deliver_timer_ = loop_.After(std::chrono::milliseconds(0), [this] { Deliver(); });
  }

  // Receivers may end their own call or others and begin new ones, but may not destroy this object.
  void Deliver() {
    std::vector<uint64_t> news;
    for (const auto& [id, call] : calls_) {
      if (call->has_news()) news.push_back(id);
    }
    for (const uint64_t id : news) {
      DeliverPieces(id);
      DeliverResult(id);
    }
  }

  void DeliverPieces(uint64_t id) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    const std::string pieces = found->second->TakePieces();
    if (pieces.empty()) return;
    const Data data = found->second->data();
    data(pieces);
  }

  void DeliverResult(uint64_t id) {
    const auto found = calls_.find(id);
    if (found == calls_.end() || !found->second->finished()) return;
    const std::unique_ptr<CurlCall> call = std::move(found->second);
    calls_.erase(found);
    StatusOr<HttpReply> result = call->TakeResult();
    if (result.ok() && result->status == kUnauthorized) credentials_.Reject();
    call->done()(std::move(result));
  }

  EventLoop& loop_;
  const ClusterAccess access_;
  LoopCommandRunner runner_;
  Credentials credentials_;
  CURLM* const multi_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, std::unique_ptr<CurlCall>> calls_;
  std::unordered_map<curl_socket_t, EventLoop::HandlePtr> sockets_;
  EventLoop::HandlePtr timer_;
  EventLoop::HandlePtr deliver_timer_;
};

CurlTransport::CurlTransport(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CurlTransport::~CurlTransport() = default;

StatusOr<std::unique_ptr<CurlTransport>> CurlTransport::Create(EventLoop& loop,
                                                               ClusterAccess access) {
  if (!InitializeCurl()) return Internal("libcurl cannot be initialized");
  return std::unique_ptr<CurlTransport>(
      new CurlTransport(std::make_unique<Impl>(loop, std::move(access))));
}

std::unique_ptr<HttpTransport::Call> CurlTransport::Send(HttpRequest request, Data data,
                                                         Done done) {
  return impl_->Send(std::move(request), std::move(data), std::move(done));
}

}  // namespace resmgr::agent
