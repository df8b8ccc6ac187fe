// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "test/support/fake_runtime/cri_methods.h"
#include "test/support/fake_runtime/cri_store.h"
#include "test/support/fake_runtime/generic_server.h"
#include "test/support/wait.h"

namespace resmgr::test {

// Scripted behaviour of one method, in place of its own or before it.
struct MethodScript {
  // Applies to this many next calls; -1 is all of them.
  int times = -1;
  std::chrono::milliseconds delay{0};
  // Takes effect only after Release.
  bool hold = false;
  // Answers with this error and changes nothing.
  std::optional<grpc::Status> error = {};
  // Carries the call out, but answers with this error.
  std::optional<grpc::Status> late_error = {};
  // Answers with exactly these messages.
  std::optional<std::vector<std::string>> reply = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::vector<std::pair<std::string, std::string>> trailers = {};
  bool gzip = false;
  // Closes all connections when the call has arrived, without carrying it out.
  bool cut = false;
  // Answers with the messages, but never ends the call.
  bool stall = false;
};

// One call that arrived, in the order of arrival.
struct RecordedCall {
  std::string path;
  MetadataMap metadata;
  std::chrono::system_clock::time_point deadline;
  std::vector<std::string> messages;  // as they came, decompressed
  bool half_closed = false;
  bool answered = false;  // its answer is on its way
  bool ended = false;     // the server was told that the answer has left, or the client
  bool cancelled = false;
};

// A CRI runtime in memory behind a real gRPC server: both services of runtime.v1 and
// runtime.v1alpha2 on one CriStore, and the service test.Echo for what no CRI method does:
//   /test.Echo/Unary    the request, back
//   /test.Echo/Stream   the request, as often as the metadata "x-count" says
//   /test.Echo/Collect  all messages of a client's stream, back as one
//   /test.Echo/Bidi     each message, back as it comes
//   /test.Echo/Sized    a message of as many bytes as the request says in decimal; "x-count" too
// All else is UNIMPLEMENTED. Thread-safe. The state survives Stop and Start, as that of a real
// runtime does.
class FakeRuntime final : private CallHandler {
 public:
  struct Options {
    CriStore::Options store;
    // Keeps every call that arrived; off for a process that runs for long.
    bool record = true;
  };

  FakeRuntime();
  explicit FakeRuntime(Options options);
  ~FakeRuntime() override;

  Status Start(const std::string& socket_path);
  // Like kill -9: connections close, calls are never answered. A killed process leaves its socket
  // file behind.
  enum class SocketFile { kRemove, kLeave };
  void Stop(SocketFile file = SocketFile::kRemove);
  void CutConnections();
  int connections_accepted();

  // `method` is a path or its last element ("CreateContainer").
  void Script(std::string_view method, MethodScript script);
  void ClearScripts();
  // A method that no version of the CRI has, by its path. Before Start.
  using Method = std::function<MethodReply(CriStore& store, std::string_view request)>;
  void AddMethod(const std::string& path, Method method);
  // How many calls are held now; waits until there are `count`.
  bool WaitForHeld(std::string_view method, size_t count,
                   std::chrono::milliseconds timeout = kWait);
  // Releases the held calls, and holds no further ones.
  void Release(std::string_view method);

  std::vector<RecordedCall> Calls(std::string_view method);
  // Waits until that many calls arrived complete, or were cancelled.
  bool WaitForCalls(std::string_view method, size_t count,
                    std::chrono::milliseconds timeout = kWait);
  bool WaitForCancelled(std::string_view method, size_t count,
                        std::chrono::milliseconds timeout = kWait);
  // Drops the records of the calls that were answered or cancelled.
  void ForgetCalls();
  // How many calls of a method arrived since the start, recorded or not.
  uint64_t CallCount(std::string_view method);

  // Looks at or changes the state between two calls.
  template <typename Function>
  auto WithStore(Function function) {
    const std::lock_guard lock(mutex_);
    return function(store_);
  }
  std::optional<CriStore::Container> FindContainer(const std::string& id);

 private:
  static constexpr std::chrono::milliseconds kWait = kWaitPatience;
  // Shared with the calls that it applies to: its replies may be large.
  using ScriptPtr = std::shared_ptr<const MethodScript>;
  struct CurrentScript {
    ScriptPtr script;
    int left;  // calls that it still applies to; -1 for all
  };
  struct LiveCall {
    std::string request;
    ScriptPtr script;
    std::list<RecordedCall>::iterator record;
    bool recorded = false;
  };

  void OnCall(const ServerCallPtr& call) override;
  void OnMessage(const ServerCallPtr& call, const grpc::ByteBuffer& message) override;
  void OnHalfClosed(const ServerCallPtr& call) override;
  void OnEnd(const ServerCallPtr& call, bool cancelled) override;

  ScriptPtr TakeScript(const std::string& path);
  void Dispatch(const ServerCallPtr& call);
  void Answer(const ServerCallPtr& call);
  void MarkAnswered(const ServerCallPtr& call);
  void AnswerWith(const ServerCallPtr& call, const MethodScript& script, const grpc::Status& status,
                  const std::vector<std::string>& messages);
  void AnswerEcho(const ServerCallPtr& call, const MethodScript& script,
                  const std::string& request);
  bool WaitUntilCount(std::chrono::milliseconds timeout, size_t count,
                      const std::function<size_t()>& counter);

  const Options options_;
  std::string socket_path_;
  std::unique_ptr<GenericServer> server_;

  std::mutex mutex_;
  std::condition_variable changed_;
  CriStore store_;
  std::map<std::string, CurrentScript, std::less<>> scripts_;
  std::list<RecordedCall> records_;
  std::list<RecordedCall> forgotten_;                    // answered, and not ended at that time
  std::map<std::string, uint64_t, std::less<>> counts_;  // of calls, by path
  std::vector<ServerCallPtr> held_;

  std::map<std::string, Method> added_;

  // The server's thread only.
  std::map<ServerCall*, LiveCall> live_;
  std::vector<ServerCallPtr> event_streams_;
};

}  // namespace resmgr::test
