// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "pkg/node/front_door.h"
#include "pkg/node/hand_over.h"
#include "pkg/node/node_options.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// How a daemon ends: by a signal, or since another one goes on in its place. The loop stops when
// the calls in flight are over.

// Valid as long as the handles are kept. SIGTERM and SIGINT end the daemon, `first` before the
// calls in flight are waited for; SIGHUP and SIGUSR1 run the other tasks.
std::array<EventLoop::HandlePtr, 4> HandleSignals(EventLoop& loop, FrontDoor& door,
                                                  HandOver& hand_over, EventLoop::Task first,
                                                  EventLoop::Task reload, EventLoop::Task debug);

// Options for serving a daemon that asks for this one's sockets. Without sockets of the door there
// is nothing to hand over. `first` as above.
HandOver::Options HandOverOptions(const NodeOptions& options, EventLoop& loop, FrontDoor& door,
                                  EventLoop::Task first);

}  // namespace resmgr
