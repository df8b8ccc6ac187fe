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
constexpr LifeState kUnr = LifeState::kUnresolved;
constexpr LifeState kRun = LifeState::kRunning;
constexpr LifeState kExit = LifeState::kExited;
constexpr LifeState kGone = LifeState::kGone;

// A refused start does not resolve an unresolved one: the runtime may refuse a start because it is
// busy with an earlier one. A container that counted as exited may still be reported alive. kGone
// is final.
constexpr std::array<Row, kLifeStates> kTransitions = {{
    // create       start                             reported                      start
    // ok     fail   sent   ok     fail   none   exprd  crtd   run    ended  removed again
    {kCrtd, kGone, kNew, kNew, kNew, kNew, kNew, kCrtd, kRun, kExit, kGone, kNew},      // creating
    {kCrtd, kGone, kStrt, kRun, kCrtd, kUnr, kCrtd, kCrtd, kRun, kExit, kGone, kCrtd},  // created
    {kStrt, kGone, kStrt, kRun, kCrtd, kUnr, kStrt, kStrt, kRun, kExit, kGone, kStrt},  // starting
    {kUnr, kGone, kUnr, kRun, kUnr, kUnr, kCrtd, kUnr, kRun, kExit, kGone, kUnr},  // unresolved
    {kRun, kGone, kRun, kRun, kRun, kRun, kRun, kCrtd, kRun, kExit, kGone, kRun},  // running
    {kExit, kGone, kExit, kExit, kExit, kExit, kExit, kCrtd, kRun, kExit, kGone, kCrtd},   // exited
    {kGone, kGone, kGone, kGone, kGone, kGone, kGone, kGone, kGone, kGone, kGone, kGone},  // gone
}};

// The state for policies and introspection: a container whose start is under way or has an unknown
// outcome counts as created.
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
int StartsAfter(int starts, bool comes_back, LifeEvent event) {
  switch (event) {
    case LifeEvent::kStartSent:
      return starts + 1;
    case LifeEvent::kStartSucceeded:
    case LifeEvent::kStartFailed:
    case LifeEvent::kStartUnanswered:
      return starts > 0 ? starts - 1 : 0;
    case LifeEvent::kReportedRunning:
      return comes_back ? starts : 0;
    case LifeEvent::kCreateFailed:
    case LifeEvent::kEnded:
    case LifeEvent::kRemoved:
    case LifeEvent::kRevived:
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
  const LifeState before = state_;
  // While a restart is under way, a report that the container runs may be about the time before the
  // restart.
  const bool restarts = comes_back_ && before == LifeState::kRunning;
  open_starts_ = StartsAfter(open_starts_, restarts, event);
  state_ = NextState(state_, event);
  if (state_ == LifeState::kCreated && open_starts_ > 0) state_ = LifeState::kStarting;
  if (state_ != LifeState::kUnresolved) cpus_unknown_ = false;
  FollowReturn(before, event);
  container.state = Published(state_);
}

void Lifecycle::FollowReturn(LifeState before, LifeEvent event) {
  const bool ran = before == LifeState::kRunning;
  if (event == LifeEvent::kRevived) comes_back_ = before == LifeState::kExited || comes_back_;
  const bool answered = event == LifeEvent::kStartSucceeded || event == LifeEvent::kStartFailed ||
                        event == LifeEvent::kStartExpired;
  const bool over = state_ == LifeState::kExited || state_ == LifeState::kGone;
  const bool came_up = state_ == LifeState::kRunning && !ran;
  if (over || came_up || (ran && answered && open_starts_ == 0)) comes_back_ = false;
}

}  // namespace resmgr
