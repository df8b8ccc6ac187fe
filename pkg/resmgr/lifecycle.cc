// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/lifecycle.h"

#include <array>

namespace resmgr {
namespace {

template <typename Enum>
constexpr size_t IndexOf(Enum value) {
  return static_cast<size_t>(value);
}

using Row = std::array<LifeState, kLifeEvents>;

constexpr LifeState kNew = LifeState::kCreating;
constexpr LifeState kCrtd = LifeState::kCreated;
constexpr LifeState kStrt = LifeState::kStarting;
constexpr LifeState kUnrs = LifeState::kUnresolved;
constexpr LifeState kRun = LifeState::kRunning;
constexpr LifeState kExit = LifeState::kExited;
constexpr LifeState kGone = LifeState::kGone;

// A refused start leaves an unresolved one open: the runtime may have refused it because it is busy
// with that. A container that was taken for exited may still be reported alive. Nothing follows
// kGone.
constexpr std::array<Row, kLifeStates> kTransitions = {{
    // create       start                             reported
    // ok     fail   sent   ok     fail   none   exprd  crtd   run    ended  removed
    {kCrtd, kGone, kNew, kNew, kNew, kNew, kNew, kCrtd, kRun, kExit, kGone},        // creating
    {kCrtd, kGone, kStrt, kRun, kCrtd, kUnrs, kCrtd, kCrtd, kRun, kExit, kGone},    // created
    {kStrt, kGone, kStrt, kRun, kCrtd, kUnrs, kStrt, kStrt, kRun, kExit, kGone},    // starting
    {kUnrs, kGone, kUnrs, kRun, kUnrs, kUnrs, kCrtd, kUnrs, kRun, kExit, kGone},    // unresolved
    {kRun, kGone, kRun, kRun, kRun, kRun, kRun, kCrtd, kRun, kExit, kGone},         // running
    {kExit, kGone, kExit, kExit, kExit, kExit, kExit, kCrtd, kRun, kExit, kGone},   // exited
    {kGone, kGone, kGone, kGone, kGone, kGone, kGone, kGone, kGone, kGone, kGone},  // gone
}};

// As policies and introspection see it: what may run already counts as created until it is known.
constexpr ContainerState Published(LifeState state) {
  switch (state) {
    case LifeState::kCreating:
      return ContainerState::kCreating;
    case LifeState::kCreated:
    case LifeState::kStarting:
    case LifeState::kUnresolved:
      return ContainerState::kCreated;
    case LifeState::kRunning:
      return ContainerState::kRunning;
    case LifeState::kExited:
    case LifeState::kGone:
      return ContainerState::kExited;
  }
  return ContainerState::kExited;
}

// How many starts are under way after the event.
int StartsAfter(int starts, LifeEvent event) {
  switch (event) {
    case LifeEvent::kStartSent:
      return starts + 1;
    case LifeEvent::kStartSucceeded:
    case LifeEvent::kStartFailed:
    case LifeEvent::kStartUnanswered:
      return starts > 0 ? starts - 1 : 0;
    case LifeEvent::kReportedRunning:
    case LifeEvent::kCreateFailed:
    case LifeEvent::kEnded:
    case LifeEvent::kRemoved:
      return 0;
    case LifeEvent::kCreateSucceeded:
    case LifeEvent::kStartExpired:
    case LifeEvent::kReportedCreated:
      return starts;
  }
  return starts;
}

}  // namespace

LifeState NextState(LifeState state, LifeEvent event) {
  return kTransitions[IndexOf(state)][IndexOf(event)];
}

void Lifecycle::Apply(LifeEvent event, Container& container) {
  open_starts_ = StartsAfter(open_starts_, event);
  state_ = NextState(state_, event);
  if (state_ == LifeState::kCreated && open_starts_ > 0) state_ = LifeState::kStarting;
  if (state_ != LifeState::kUnresolved) cpus_unknown_ = false;
  container.state = Published(state_);
}

std::string_view ToString(LifeState state) {
  constexpr std::array<std::string_view, kLifeStates> kNames = {
      "creating", "created", "starting", "unresolved", "running", "exited", "gone"};
  return kNames[IndexOf(state)];
}

std::string_view ToString(LifeEvent event) {
  constexpr std::array<std::string_view, kLifeEvents> kNames = {
      "create succeeded", "create failed", "start sent",       "start succeeded",  "start failed",
      "start unanswered", "start expired", "reported created", "reported running", "ended",
      "removed"};
  return kNames[IndexOf(event)];
}

}  // namespace resmgr
