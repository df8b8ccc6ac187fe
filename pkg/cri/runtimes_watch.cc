// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtimes_watch.h"

#include <utility>

#include "pkg/base/parse.h"
#include "pkg/cri/call_route.h"
#include "pkg/cri/edit_fields.h"
#include "pkg/cri/handler_aliases.h"
#include "pkg/grpc/unary_client.h"

namespace resmgr {
namespace {

using State = RuntimeView::State;

// Bytes; a name and a version are short, and are shown in tables.
constexpr size_t kLongest = 64;
constexpr size_t kMostHandlers = 256;

// The version for display: "containerd 1.7.24".
StatusOr<std::string> VersionText(std::string_view reply) {
  std::string name;
  std::string version;
  const bool read = ForEachField(reply, [&](const WireReader& field) {
    if (field.field() == 2) name = Printable(field.bytes(), kLongest);
    if (field.field() == 3) version = Printable(field.bytes(), kLongest);
    return true;
  });
  if (!read) return Internal("its version is malformed");
  return fmt::format("{} {}", name, version);
}

std::optional<size_t> CountListed(std::string_view list) {
  const auto ids = ReadListedIds(list);
  return ids.ok() ? std::optional(ids->size()) : std::nullopt;
}

// The names in StatusResponse.runtime_handlers.
std::vector<std::string> HandlersOf(std::string_view status) {
  std::vector<std::string> names;
  (void)ForEachField(status, [&names](const WireReader& field) {
    if (field.field() == 3 && names.size() < kMostHandlers)
      names.push_back(Printable(TextOfField(field.bytes(), 1), kLongest));
    return true;
  });
  return names;
}

}  // namespace

std::string_view ToString(RuntimeView::State state) {
  switch (state) {
    case State::kConnected:
      return "connected";
    case State::kAway:
      return "away";
    case State::kHanging:
      return "hanging";
  }
  return "away";
}

struct RuntimesWatch::Watched {
  RuntimeView view;
  std::unique_ptr<UnaryClient> client;
  size_t position = 0;
  bool asked_before = false;
  size_t open = 0;           // unanswered questions
  bool old_version = false;  // the runtime speaks v1alpha2
};

// One question to all runtimes. The last answer, or the end of the watch, ends it.
struct RuntimesWatch::Round {
  size_t left = 0;
  std::function<void()> done;
};

RuntimesWatch::RuntimesWatch(EventLoop& loop, h2::FlushQueue& flushes, Backends& backends,
                             Metrics* metrics)
    : backends_(&backends), metrics_(metrics) {
  for (const Backends::Backend& backend : backends.all())
    Add(loop, flushes, backend);
  Ask([] {});
  timer_ = loop.Every(kPeriod, [this] { Ask([] {}); });
  backends.OnSilence([this](size_t position) { AskSilent(position); });
}

RuntimesWatch::RuntimesWatch(EventLoop& loop, h2::FlushQueue& flushes,
                             const Backends::Backend& backend, const HandlerAliases* aliases)
    : backends_(nullptr), aliases_(aliases), metrics_(nullptr) {
  Add(loop, flushes, backend);
}

RuntimesWatch::~RuntimesWatch() {
  if (backends_ != nullptr) backends_->OnSilence(nullptr);
}

void RuntimesWatch::Add(EventLoop& loop, h2::FlushQueue& flushes,
                        const Backends::Backend& backend) {
  auto watched = std::make_unique<Watched>();
  watched->view.name = backend.name;
  watched->view.socket = backend.socket;
  watched->view.handlers = backend.handlers;
  watched->client = std::make_unique<UnaryClient>(loop, flushes, backend.socket);
  watched->position = all_.size();
  all_.push_back(std::move(watched));
}

void RuntimesWatch::Describe(std::function<void(std::vector<RuntimeView>)> done) {
  Ask([this, done = std::move(done)] {
    if (backends_ != nullptr) return done(Views());
    Count([this, done] { done(Views()); });
  });
}

void RuntimesWatch::Count(std::function<void()> done) {
  Watched& only = *all_.front();
  only.view.pods.reset();
  only.view.containers.reset();
  only.view.handlers.clear();
  if (only.view.state != State::kConnected) return done();
  const auto round = std::make_shared<Round>(Round{.left = 3, .done = std::move(done)});
  const auto ask = [&only, round](std::string_view method,
                                  std::function<void(const std::string& reply)> read) {
    const std::string path =
        fmt::format("/runtime.{}.RuntimeService/{}", only.old_version ? "v1alpha2" : "v1", method);
    only.client->Call(path, "", kPatience,
                      [&only, round, read = std::move(read)](const StatusOr<std::string>& reply) {
                        if (reply.ok()) {
                          read(*reply);
                        } else {
                          only.view.last_error = Printable(Message(reply.status()));
                        }
                        if (--round->left == 0) round->done();
                      });
  };
  ask("ListPodSandbox", [&only](const std::string& list) { only.view.pods = CountListed(list); });
  ask("ListContainers",
      [&only](const std::string& list) { only.view.containers = CountListed(list); });
  ask("Status", [this, &only](const std::string& status) {
    only.view.handlers =
        HandlersOf(aliases_ == nullptr
                       ? status
                       : WithAliases(HandlerUse::kHandlers, status, *aliases_).value_or(status));
  });
}

void RuntimesWatch::Ask(std::function<void()> done) {
  const auto round = std::make_shared<Round>(Round{.left = all_.size(), .done = std::move(done)});
  for (const std::unique_ptr<Watched>& watched : all_)
    Probe(*watched, round);
}

void RuntimesWatch::AskSilent(size_t position) {
  if (all_[position]->open > 0) return;
  Probe(*all_[position], std::make_shared<Round>(Round{.left = 1, .done = [] {}}));
}

void RuntimesWatch::Probe(Watched& watched, const std::shared_ptr<Round>& round) {
  if (!watched.client->connected()) {
    // If this fails, the call below reports it.
    (void)watched.client->Connect([this, &watched](const Status& why) { OnLost(watched, why); });
    watched.old_version = false;
  }
  const std::string path =
      fmt::format("/runtime.{}.RuntimeService/Version", watched.old_version ? "v1alpha2" : "v1");
  ++watched.open;
  watched.client->Call(path, "", kPatience,
                       [this, &watched, round](const StatusOr<std::string>& answer) {
                         --watched.open;
                         if (answer.status().code() == StatusCode::kUnimplemented &&
                             !std::exchange(watched.old_version, true)) {
                           return Probe(watched, round);
                         }
                         OnAnswer(watched, answer);
                         if (--round->left > 0) return;
                         Tell();
                         round->done();
                       });
}

void RuntimesWatch::OnAnswer(Watched& watched, const StatusOr<std::string>& answer) {
  const StatusOr<std::string> version = answer.ok() ? VersionText(*answer) : answer.status();
  if (version.ok()) {
    watched.view.version = *version;
  } else {
    watched.view.last_error = Printable(Message(version.status()));
  }
  const bool late = version.status().code() == StatusCode::kDeadlineExceeded;
  if (backends_ != nullptr) backends_->NoteAnswer(watched.position, !late);
  if (late) {
    SetState(watched, State::kHanging);
  } else {
    SetState(watched, watched.client->connected() ? State::kConnected : State::kAway);
  }
}

void RuntimesWatch::OnLost(Watched& watched, const Status& why) {
  watched.view.last_error = Printable(Message(why));
  // If the runtime is connected again already, the reported loss is that of an earlier connection.
  if (!watched.client->connected()) SetState(watched, State::kAway);
}

void RuntimesWatch::SetState(Watched& watched, State state) {
  if (std::exchange(watched.view.state, state) == state && watched.asked_before) return;
  watched.asked_before = true;
  if (backends_ != nullptr) watched.view.since = std::chrono::system_clock::now();
}

void RuntimesWatch::Tell() {
  if (metrics_ == nullptr) return;
  for (const RuntimeView& view : Views()) {
    metrics_->ShowRuntime(view.name, {.connected = view.state == State::kConnected,
                                      .calls = view.calls.value_or(0),
                                      .errors = view.errors.value_or(0),
                                      .refused_claims = view.refused_claims});
  }
}

std::vector<RuntimeView> RuntimesWatch::Known() const {
  if (backends_ == nullptr) return {};
  std::vector<RuntimeView> views = Views();
  std::erase_if(views, [](const RuntimeView& view) { return !view.since; });
  return views;
}

std::vector<RuntimeView> RuntimesWatch::Views() const {
  std::vector<RuntimeView> views;
  for (size_t i = 0; i < all_.size(); ++i) {
    RuntimeView& view = views.emplace_back(all_[i]->view);
    if (backends_ == nullptr) continue;
    const IdOwners& owners = backends_->owners();
    view.pods = owners.IdsOf(IdOwners::Kind::kPodSandbox, i).size();
    view.containers = owners.IdsOf(IdOwners::Kind::kContainer, i).size();
    const Backends::Calls& calls = backends_->calls(i);
    view.calls = calls.ended;
    view.errors = calls.failed;
    view.refused_claims = calls.refused_claims;
  }
  return views;
}

}  // namespace resmgr
