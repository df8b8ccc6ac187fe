// SPDX-License-Identifier: Apache-2.0
#include "test/support/fake_runtime/fake_runtime.h"

#include <algorithm>

#include <unistd.h>

#include "pkg/base/parse.h"
#include "test/support/fake_runtime/cri_methods.h"

namespace resmgr::test {

namespace {

bool Concerns(std::string_view method, std::string_view path) {
  return method == path || method == MethodName(path);
}

int CountOf(const ServerCall& call) {
  const auto count = call.metadata().find("x-count");
  if (count == call.metadata().end()) return 1;
  return static_cast<int>(ParseInt(count->second).value_or(1));
}

void Decorate(const MethodScript& script, ServerCall& call) {
  for (const auto& [key, value] : script.headers)
    call.AddHeader(key, value);
  for (const auto& [key, value] : script.trailers)
    call.AddTrailer(key, value);
  if (script.gzip) call.UseGzip();
}

}  // namespace

FakeRuntime::FakeRuntime() : FakeRuntime(Options()) {}

FakeRuntime::FakeRuntime(Options options) : options_(std::move(options)), store_(options_.store) {
  store_.OnEvent([this](const cri::ContainerEventResponse& event) {
    // Changes come from calls and from tests; streams belong to the server's thread.
    if (!server_) return;
    server_->Post([this, bytes = event.SerializeAsString()] {
      for (const ServerCallPtr& stream : event_streams_)
        stream->Write(ToBuffer(bytes));
    });
  });
}

FakeRuntime::~FakeRuntime() {
  Stop();
}

Status FakeRuntime::Start(const std::string& socket_path) {
  RESMGR_ASSIGN_OR_RETURN(auto server, GenericServer::Start(socket_path, *this));
  const std::lock_guard lock(mutex_);
  socket_path_ = socket_path;
  server_ = std::move(server);
  return OkStatus();
}

void FakeRuntime::Stop(SocketFile file) {
  std::unique_ptr<GenericServer> server;
  {
    const std::lock_guard lock(mutex_);
    server = std::move(server_);
  }
  if (!server) return;
  server.reset();
  live_.clear();
  event_streams_.clear();
  if (file == SocketFile::kRemove) ::unlink(socket_path_.c_str());
}

void FakeRuntime::CutConnections() {
  const std::lock_guard lock(mutex_);
  if (server_) server_->CutConnections();
}

int FakeRuntime::connections_accepted() {
  const std::lock_guard lock(mutex_);
  return server_ ? server_->accepted() : 0;
}

void FakeRuntime::Script(std::string_view method, MethodScript script) {
  const std::lock_guard lock(mutex_);
  const int times = script.times;
  scripts_.insert_or_assign(
      std::string(method),
      CurrentScript{std::make_shared<const MethodScript>(std::move(script)), times});
}

void FakeRuntime::AddMethod(const std::string& path, Method method) {
  added_[path] = std::move(method);
}

void FakeRuntime::ClearScripts() {
  const std::lock_guard lock(mutex_);
  scripts_.clear();
}

FakeRuntime::ScriptPtr FakeRuntime::TakeScript(const std::string& path) {
  static const ScriptPtr kNone = std::make_shared<const MethodScript>();
  for (const std::string_view key : {std::string_view(path), MethodName(path)}) {
    const auto found = scripts_.find(key);
    if (found == scripts_.end()) continue;
    ScriptPtr script = found->second.script;
    if (found->second.left > 0 && --found->second.left == 0) scripts_.erase(found);
    return script;
  }
  return kNone;
}

bool FakeRuntime::WaitUntilCount(std::chrono::milliseconds timeout, size_t count,
                                 const std::function<size_t()>& counter) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [&] { return counter() >= count; });
}

bool FakeRuntime::WaitForHeld(std::string_view method, size_t count,
                              std::chrono::milliseconds timeout) {
  return WaitUntilCount(timeout, count, [&] {
    return static_cast<size_t>(
        std::count_if(held_.begin(), held_.end(),
                      [&](const ServerCallPtr& call) { return Concerns(method, call->path()); }));
  });
}

void FakeRuntime::Release(std::string_view method) {
  const std::lock_guard lock(mutex_);
  std::erase_if(scripts_, [&](const auto& entry) {
    return entry.second.script->hold && Concerns(entry.first, method);
  });
  std::erase_if(held_, [&](const ServerCallPtr& call) {
    if (!Concerns(method, call->path())) return false;
    if (server_) server_->Post([this, call] { Answer(call); });
    return true;
  });
}

std::vector<RecordedCall> FakeRuntime::Calls(std::string_view method) {
  const std::lock_guard lock(mutex_);
  std::vector<RecordedCall> calls;
  for (const RecordedCall& call : records_) {
    if (Concerns(method, call.path)) calls.push_back(call);
  }
  return calls;
}

bool FakeRuntime::WaitForCalls(std::string_view method, size_t count,
                               std::chrono::milliseconds timeout) {
  return WaitUntilCount(timeout, count, [&] {
    return static_cast<size_t>(
        std::count_if(records_.begin(), records_.end(), [&](const RecordedCall& call) {
          return Concerns(method, call.path) && (call.half_closed || call.ended);
        }));
  });
}

bool FakeRuntime::WaitForCancelled(std::string_view method, size_t count,
                                   std::chrono::milliseconds timeout) {
  return WaitUntilCount(timeout, count, [&] {
    return static_cast<size_t>(std::count_if(
        records_.begin(), records_.end(),
        [&](const RecordedCall& call) { return Concerns(method, call.path) && call.cancelled; }));
  });
}

void FakeRuntime::ForgetCalls() {
  const std::lock_guard lock(mutex_);
  std::erase_if(forgotten_, [](const RecordedCall& call) { return call.ended; });
  // Calls without an answer keep their records. A client may have the answer before the server is
  // told that the call has ended, which still writes to the record.
  for (auto call = records_.begin(); call != records_.end();) {
    const auto next = std::next(call);
    if (call->ended) {
      records_.erase(call);
    } else if (call->answered) {
      forgotten_.splice(forgotten_.end(), records_, call);
    }
    call = next;
  }
}

uint64_t FakeRuntime::CallCount(std::string_view method) {
  const std::lock_guard lock(mutex_);
  uint64_t count = 0;
  for (const auto& [path, calls] : counts_) {
    if (Concerns(method, path)) count += calls;
  }
  return count;
}

std::optional<CriStore::Container> FakeRuntime::FindContainer(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = store_.containers().find(id);
  if (found == store_.containers().end()) return std::nullopt;
  return found->second;
}

void FakeRuntime::OnCall(const ServerCallPtr& call) {
  LiveCall live;
  {
    const std::lock_guard lock(mutex_);
    live.script = TakeScript(call->path());
    ++counts_[call->path()];
    if (options_.record) {
      RecordedCall record;
      record.path = call->path();
      record.metadata = call->metadata();
      record.deadline = call->deadline();
      live.record = records_.insert(records_.end(), std::move(record));
      live.recorded = true;
    }
  }
  live_.emplace(call.get(), std::move(live));
}

void FakeRuntime::OnMessage(const ServerCallPtr& call, const grpc::ByteBuffer& message) {
  LiveCall& live = live_.at(call.get());
  const std::string bytes = ToBytes(message);
  if (live.recorded) {
    const std::lock_guard lock(mutex_);
    live.record->messages.push_back(bytes);
  }
  if (call->path() == "/test.Echo/Bidi") {
    call->Write(message);
  } else {
    live.request += bytes;
  }
}

void FakeRuntime::OnHalfClosed(const ServerCallPtr& call) {
  LiveCall& live = live_.at(call.get());
  {
    const std::lock_guard lock(mutex_);
    if (live.recorded) live.record->half_closed = true;
    if (live.script->hold) held_.push_back(call);
  }
  changed_.notify_all();
  if (!live.script->hold) Dispatch(call);
}

void FakeRuntime::OnEnd(const ServerCallPtr& call, bool cancelled) {
  const auto live = live_.find(call.get());
  std::erase(event_streams_, call);
  {
    const std::lock_guard lock(mutex_);
    if (live->second.recorded) {
      live->second.record->ended = true;
      live->second.record->cancelled = cancelled;
    }
    std::erase(held_, call);
  }
  live_.erase(live);
  changed_.notify_all();
}

void FakeRuntime::Dispatch(const ServerCallPtr& call) {
  const std::chrono::milliseconds delay = live_.at(call.get()).script->delay;
  if (delay.count() == 0) return Answer(call);
  const std::lock_guard lock(mutex_);
  if (server_) server_->After(delay, [this, call] { Answer(call); });
}

void FakeRuntime::Answer(const ServerCallPtr& call) {
  // The client may have gone while the call was held: then it has no effect.
  if (call->ended()) return;
  LiveCall& live = live_.at(call.get());
  const ScriptPtr held = live.script;
  const MethodScript& script = *held;
  const std::string request = std::move(live.request);
  if (script.cut) return CutConnections();
  if (script.error) return AnswerWith(call, script, *script.error, {});
  if (script.reply) return AnswerWith(call, script, {}, *script.reply);
  if (call->path().starts_with("/test.Echo/")) {
    return AnswerEcho(call, script, request);
  }
  if (MethodName(call->path()) == "GetContainerEvents") {
    event_streams_.push_back(call);
    call->SendHeaders();
    return;
  }
  const auto added = added_.find(std::string(call->path()));
  const Method method = added == added_.end() ? Method(FindCriMethod(call->path())) : added->second;
  if (!method) {
    return AnswerWith(
        call, script,
        {grpc::StatusCode::UNIMPLEMENTED, "unknown method " + std::string(call->path())}, {});
  }
  std::unique_lock lock(mutex_);
  const MethodReply reply = method(store_, request);
  lock.unlock();
  if (script.late_error) return AnswerWith(call, script, *script.late_error, {});
  AnswerWith(call, script, reply.status, reply.messages);
}

void FakeRuntime::MarkAnswered(const ServerCallPtr& call) {
  const LiveCall& live = live_.at(call.get());
  if (!live.recorded) return;
  const std::lock_guard lock(mutex_);
  live.record->answered = true;
}

void FakeRuntime::AnswerWith(const ServerCallPtr& call, const MethodScript& script,
                             const grpc::Status& status, const std::vector<std::string>& messages) {
  Decorate(script, *call);
  if (!script.stall) MarkAnswered(call);
  if (messages.size() == 1 && !script.stall) return call->WriteLast(ToBuffer(messages[0]), status);
  for (const std::string& message : messages)
    call->Write(ToBuffer(message));
  if (!script.stall) call->Finish(status);
}

void FakeRuntime::AnswerEcho(const ServerCallPtr& call, const MethodScript& script,
                             const std::string& request) {
  Decorate(script, *call);
  if (!script.stall) MarkAnswered(call);
  const std::string_view name = MethodName(call->path());
  if (name == "Sized") {
    const auto size = static_cast<size_t>(ParseUint(request).value_or(0));
    call->Write(ToBuffer(std::string(size, 'x')), CountOf(*call));
  } else if (name == "Unary" || name == "Collect" || name == "Stream") {
    call->Write(ToBuffer(request), CountOf(*call));
  } else if (name != "Bidi") {
    return call->Finish({grpc::StatusCode::UNIMPLEMENTED, "unknown method " + call->path()});
  }
  if (!script.stall) call->Finish(grpc::Status::OK);
}

}  // namespace resmgr::test
