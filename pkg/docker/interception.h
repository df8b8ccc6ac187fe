// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/base/status.h"

namespace resmgr::docker {

// One intercepted request: the proxy holds all of it, and then all of its reply, until the
// interception decides. If no reply comes, or the client is gone, this object is destroyed without
// one. Loop's thread only.
class Interception {
 public:
  // The proxy's side. Each function may be called from within the call that it answers, or later.
  class Client {
   public:
    // Answers OnRequest. nullopt: the request passes unchanged.
    virtual void Forward(std::optional<std::string> body) = 0;
    virtual void Reject(const Status& why) = 0;
    // Answers OnReply. Not OK: the client gets this error instead of the reply.
    virtual void PassReply(const Status& error) = 0;

   protected:
    ~Client() = default;
  };

  virtual ~Interception() = default;

  // The whole body, without chunk framing. The view is valid until the answer.
  virtual void OnRequest(std::string_view body) = 0;
  // Follows Forward when dockerd cannot be reached.
  virtual void OnNotForwarded() = 0;
  // dockerd's reply; the body is empty if it is larger than the limit.
  virtual void OnReply(int status, std::string_view body) = 0;
};

// Chooses which requests are intercepted.
class Interceptor {
 public:
  virtual ~Interceptor() = default;
  // nullptr: the request passes. The client outlives the result.
  virtual std::unique_ptr<Interception> Begin(std::string_view method, std::string_view target,
                                              Interception::Client& client) = 0;
};

// The bytes of an intercepted request and of its reply. No I/O. Thread-compatible.
class HeldExchange {
 public:
  // Limits in bytes. Most of a request is the container's environment and labels.
  static constexpr size_t kMaxRequest = size_t{4} * 1024 * 1024;
  static constexpr size_t kMaxReply = size_t{256} * 1024;

  enum class Phase : uint8_t { kCollecting, kDeciding, kForwarded, kReplying };

  explicit HeldExchange(std::unique_ptr<Interception> interception)
      : interception_(std::move(interception)) {}

  Phase phase() const { return phase_; }
  // Adds the head, then pieces of the body. kResourceExhausted: longer than kMaxRequest.
  Status AddRequest(std::string_view bytes);
  // The "100 Continue" for a client that waits for it, returned once; else "".
  std::string_view Leave();
  // Passes the complete request to the interception.
  void Show();
  // The body without chunk framing, valid from Show until Request.
  std::string_view body() const {
    return body_.empty() ? std::string_view(request_).substr(head_) : body_;
  }
  // The bytes for dockerd: the request with another body, or unchanged except for "Expect".
  std::string Request(const std::string* body);
  void OnForwarded() { phase_ = Phase::kForwarded; }
  void OnNotForwarded() { interception_->OnNotForwarded(); }

  // False: the reply exceeds kMaxReply.
  bool AddReply(std::string_view bytes);
  // Passes the complete reply to the interception.
  void ShowReply(int status);
  std::string ReplyBody() const;
  std::string TakeReply() { return std::move(reply_); }

 private:
  std::string request_;  // head and body as they came
  size_t head_ = 0;      // the size of the head
  std::string body_;     // without chunk framing
  std::string reply_;
  Phase phase_ = Phase::kCollecting;
  bool leave_given_ = false;
  std::unique_ptr<Interception> interception_;
};

}  // namespace resmgr::docker
