// SPDX-License-Identifier: Apache-2.0
#include "agent/curl_transport.h"

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <curl/curl.h>

#include "agent/command_runner.h"
#include "agent/credentials.h"
#include "agent/curl_call.h"

namespace resmgr::agent {
namespace {

// Once per process; libcurl is never cleaned up, since others may use it too.
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
        credentials_(access_, runner_),
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
    if (found == calls_.end()) return;  // given up while a plugin ran
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
