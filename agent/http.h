// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/pacing.h"
#include "pkg/base/json.h"
#include "pkg/base/status.h"
#include "pkg/log/rate_limit.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

using Json = nlohmann::json;
using json_path::Find;
using json_path::IntAt;
using json_path::TextAt;

// The agent's name to the API server: the manager of the fields that it writes, the source of its
// events, and its user agent.
inline constexpr std::string_view kAgentName = "cri-resmgr-agent";
inline constexpr int kUnauthorized = 401;
inline constexpr std::string_view kJsonType = "application/json";
inline constexpr std::string_view kMergePatch = "application/merge-patch+json";

struct HttpRequest {
  std::string method = "GET";
  std::string target{};  // path and query
  std::string content_type{};
  std::string accept{kJsonType};  // the type of the reply's body
  std::string body{};
  // Time limit until the reply begins.
  std::chrono::milliseconds first_byte_timeout{30'000};
  // Time limit until the reply has ended.
  std::chrono::milliseconds timeout{30'000};
};

struct HttpReply {
  int status = 0;
  std::string body{};  // empty if the pieces went to `data`
  // The wait that the server asked for (Retry-After).
  std::optional<std::chrono::seconds> retry_after{};
};

// A request with this body, of the given content type.
HttpRequest RequestWith(std::string method, std::string target, const Json& body,
                        std::string_view content_type = kJsonType);
// A request that deletes the object if these parts of its metadata are still the same.
HttpRequest Deletion(std::string target, const Json& preconditions);

// The transport to one API server: address, TLS and credentials belong to the implementation. Used
// on one thread, which also gets the callbacks, never from within Send.
class HttpTransport {
 public:
  // A request under way. Destroying it gives the request up and prevents further callbacks; its own
  // callbacks may destroy it.
  class Call {
   public:
    virtual ~Call() = default;
  };

  // Gets the body of a reply with status 200, in pieces.
  using Data = std::function<void(std::string_view piece)>;
  // Called once, at the end. An error: the server was not reached or the reply broke off.
  // kUnavailable, kDeadlineExceeded, kResourceExhausted for a body of more than kMaxBody,
  // kFailedPrecondition without credentials.
  using Done = std::function<void(StatusOr<HttpReply> reply)>;

  static constexpr size_t kMaxBody = 16 << 20;

  virtual ~HttpTransport() = default;

  // Without `data` the body is collected.
  virtual std::unique_ptr<Call> Send(HttpRequest request, Data data, Done done) = 0;
};

// A value of HttpRequest::accept that asks for objects' metadata alone; an older server sends whole
// objects. `kind` is PartialObjectMetadata, or PartialObjectMetadataList for a list.
std::string MetadataOnly(std::string_view kind);

// OK for 2xx, else an error with the server's own words (the message of a Kubernetes Status):
// kNotFound 404, kPermissionDenied 401 and 403, kAborted 409, kOutOfRange 410, kInvalidArgument
// other 4xx, kUnavailable all else.
Status StatusOfReply(const HttpReply& reply);

// The same for a request that may have had no reply.
Status StatusOfReply(const StatusOr<HttpReply>& reply);

// Whether the server would refuse the same request again: 400, 403 (which is also the code of an
// admission policy), 413 and 422.
bool RefusesContent(const HttpReply& reply);

// The wait before the next try that the server asked for, at most a minute, so that no server can
// silence the agent.
std::chrono::seconds WaitAskedFor(const HttpReply& reply);

// Requests under way, each with a receiver of its own, which is not called after this object's end.
// Thread-compatible.
class OpenCalls {
 public:
  using Done = std::function<void(const StatusOr<HttpReply>& reply)>;

  explicit OpenCalls(HttpTransport& transport) : transport_(transport) {}

  void Send(HttpRequest request, Done done);
  size_t size() const { return calls_.size(); }

 private:
  HttpTransport& transport_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, std::unique_ptr<HttpTransport::Call>> calls_;
};

// Repeats one request until the API server takes it. A new request replaces the former one, but is
// not sent while the former one is under way: the server could carry out the former request after
// the new one, even if the agent has given it up. Thread-compatible.
class Delivery {
 public:
  // Gets the reply of the success, or the last one.
  using Done = std::function<void(const StatusOr<HttpReply>& reply)>;

  // Asked before each try; false ends the tries with kCancelled.
  using Wanted = std::function<bool()>;

  // The reaction to a refusal of the request's content (RefusesContent).
  enum class Refusal { kTryAgain, kEnd };

  // `what` names the request in the log. `max_tries` 0: tries without limit; otherwise the answers
  // 404 and 409 also end the tries at once.
  Delivery(HttpTransport& transport, Clock& timers, std::string what, Backoff::Options backoff,
           uint64_t seed, int max_tries);

  // Calls `done` once, but not for a request that was replaced.
  void Send(HttpRequest request, Done done, Refusal refusal = Refusal::kTryAgain,
            Wanted wanted = nullptr);
  // As Send, but if a former request is under way its waits go on, so that a server that fails or
  // asks for a pause is spared.
  void Replace(HttpRequest request, Done done, Refusal refusal = Refusal::kTryAgain,
               Wanted wanted = nullptr);
  bool under_way() const { return under_way_; }
  // Whether the server has a request that it has not answered.
  bool awaits_reply() const { return call_ != nullptr; }

 private:
  void Take(HttpRequest request, Done done, Refusal refusal, Wanted wanted);
  void Try();
  void Replied(const StatusOr<HttpReply>& reply);
  void TryAfter(std::chrono::milliseconds wait);
  void End(const StatusOr<HttpReply>& reply);

  HttpTransport& transport_;
  Clock& timers_;
  const std::string what_;
  const int max_tries_;
  Backoff backoff_;
  RateLimit log_limit_;
  HttpRequest request_;
  Done done_;
  Refusal refusal_ = Refusal::kTryAgain;
  Wanted wanted_;  // nullptr: always
  bool under_way_ = false;
  bool replaced_ = false;  // request_ was replaced after call_ began
  bool waits_on_ = false;  // request_ took the place of one that was under way
  int tries_ = 0;
  std::unique_ptr<HttpTransport::Call> call_;
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr::agent
