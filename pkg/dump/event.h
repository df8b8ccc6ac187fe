// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/dump/dumped_call.h"
#include "pkg/dump/output_file.h"
#include "pkg/dump/rules.h"

namespace google::protobuf {

class Message;

}  // namespace google::protobuf

namespace resmgr::dump {

// Empty messages of a CRI or NRI call's types, for copying with New(). Static, never freed.
struct MethodTypes {
  const google::protobuf::Message* request = nullptr;
  const google::protobuf::Message* reply = nullptr;
};

// Finds the types by gRPC path. runtime.v1 and runtime.v1alpha2 have the same types, since their
// field numbers agree; NRI's methods have paths of the same form. Both are null for an unknown
// path. Thread-safe.
MethodTypes FindMethodTypes(std::string_view path);

// The last element of a gRPC path: "Version". The path itself when it has no slash.
std::string_view MethodName(std::string_view path);

class PodTrace;

// The decision of the present rules about one method.
struct MethodPlan {
  std::string name;  // last element of the path, printable
  MethodTypes types;
  Target target = Target::kOff;
  bool record = false;
};

// Complete settings for the writer, so that only the latest ones matter.
struct WriterSettings {
  bool show_secrets = false;
  std::chrono::steady_clock::duration count_period{};
  // If the place of an open file stays the same, writing goes on in that file.
  OutputPlace file{};
  OutputPlace recording{};
  std::chrono::steady_clock::time_point recording_start{};
  std::chrono::system_clock::time_point recording_wall_start{};
};

// The use of one container, for a recording.
struct RecordedUse {
  std::string container{};  // id
  double cpus = 0;
  std::optional<double> pressure{};  // percent of the time in which it waited for a CPU
};

// One task for the writer, in the order of the queue.
struct Event {
  enum class Kind {
    kRequest,
    kChanged,  // the relay changed the request
    kReply,
    kEnd,
    kLost,      // events were dropped for want of room
    kSettings,  // a change of settings
    kUse,       // figures of containers' use; not a call
  };

  Kind kind = Kind::kRequest;
  uint64_t call = 0;
  bool intercepted = false;
  std::shared_ptr<const MethodPlan> plan{};
  std::chrono::system_clock::time_point wall_start{};
  std::chrono::steady_clock::time_point start{};  // begin of the call
  std::chrono::steady_clock::time_point at{};     // time of this event
  Payload payload{};                           // kRequest, kReply; kChanged: the client's request
  std::string changed{};                       // kChanged: the request to the runtime
  int code = 0;                                // kEnd: gRPC status code
  std::string message{};                       // kEnd: gRPC status message
  uint64_t lost_calls = 0;                     // kLost: calls whose events were dropped
  std::vector<uint64_t> cut_calls{};           // kLost: recorded calls whose request was seen
  uint64_t lost_use = 0;                       // kLost: lines of use that were dropped
  std::unique_ptr<WriterSettings> settings{};  // kSettings
  std::shared_ptr<PodTrace> trace{};           // gets the event, too; may be null
  std::vector<RecordedUse> use{};              // kUse

  static constexpr size_t kIdSize = 64;  // id of a container

  // Bytes of memory that the event takes in the queue.
  size_t Cost() const {
    return sizeof(Event) + payload.bytes.capacity() + payload.encoding.capacity() +
           changed.capacity() + message.capacity() +
           use.capacity() * (sizeof(RecordedUse) + kIdSize);
  }
  // Whether no other event of the call follows.
  bool Last() const {
    return kind == Kind::kEnd || (plan->target == Target::kCount && !plan->record);
  }
};

}  // namespace resmgr::dump
