"""Collectives replayed by SimGrid, for the Python it was built for: cases as JSON on stdin, seconds on stdout.

A case is ``{"rule", "n", "transfers": [[source, target, seconds, latency, [what it waits for]], ...]}``.  Every worker runs a program of
sends and one of receives; a transfer starts when both have come to it.  Rule "blocking": latency and bytes are SimGrid's own.  Rule "fifo":
the latency passes beside the next transfer, so a courier of its own carries it.  Rule "fair": every transfer is a program of its own on the
shared up and down links of its workers.
"""

import json
import sys

from simgrid import Actor, Engine, LinkInRoute, Mailbox, NetZone, Semaphore, this_actor

RATE = 1e12  # bytes per second, so that sizes rounded to bytes are exact to 1e-12 s


class Case:
    def __init__(self, zone, number, case):
        self.name, self.rule, self.made, self.end = f"c{number}", case["rule"], case["transfers"], 0.0
        self.hosts = [zone.create_host(f"{self.name}h{i}", 1e9) for i in range(case["n"])]
        self.followers = [[] for _ in self.made]
        for i, (_, _, _, _, after) in enumerate(self.made):
            for j in after:
                self.followers[j].append(i)
        self.links(zone)

    def links(self, zone):
        ends = [[zone.create_link(f"{h.name}{side}", RATE).set_latency(0).seal() for h in self.hosts] for side in ("up", "down")]
        pairs = {(s, t): lat for s, t, _, lat, _ in self.made}
        for (s, t), lat in pairs.items():
            if self.rule == "fair":
                route = [ends[0][s], ends[1][t]]
            else:
                route = [zone.create_link(f"{self.name}l{s}-{t}", RATE).set_latency(lat if self.rule == "blocking" else 0).seal()]
            zone.add_route(self.hosts[s].netpoint, self.hosts[t].netpoint, None, None, [LinkInRoute(link) for link in route], False)

    def start(self):
        self.ready = [Semaphore(0) for _ in self.made]
        self.pair = [Semaphore(0) for _ in self.made]
        order = {}
        self.next = {}
        for i, (s, t, *_) in enumerate(self.made):
            if (s, t) in order:
                self.next[order[s, t]] = i
            else:
                self.pair[i].release()
            order[s, t] = i
        for w, host in enumerate(self.hosts):
            sends = [i for i, t in enumerate(self.made) if t[0] == w]
            gets = [i for i, t in enumerate(self.made) if t[1] == w]
            for program, numbers in ((self.send, sends), (self.get, gets)):
                for group in [[i] for i in numbers] if self.rule == "fair" else [numbers]:
                    Actor.create(f"{self.name}a{w}", host, program, group)

    def send(self, numbers):
        for i in numbers:
            for _ in self.made[i][4]:
                self.ready[i].acquire()
            if self.rule == "fair":
                self.pair[i].acquire()
            Mailbox.by_name(f"{self.name}m{i}").put("data", round(self.made[i][2] * RATE))
            if self.rule == "fair" and i in self.next:
                self.pair[self.next[i]].release()

    def get(self, numbers):
        for i in numbers:
            Mailbox.by_name(f"{self.name}m{i}").get()
            if self.rule == "blocking":
                self.arrived(i)
            else:
                Actor.create(f"{self.name}k{i}", this_actor.get_host(), self.courier, i)

    def courier(self, i):
        this_actor.sleep_for(self.made[i][3])
        self.arrived(i)

    def arrived(self, i):
        self.end = max(self.end, Engine.clock)
        for j in self.followers[i]:
            self.ready[j].release()


def main():
    exact = ["network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0", "surf/precision:1e-12", "maxmin/precision:1e-12"]
    engine = Engine([sys.argv[0], "--log=root.threshold:critical", *(f"--cfg={c}" for c in exact)])
    zone = NetZone.create_full_zone("all")
    cases = [Case(zone, number, case) for number, case in enumerate(json.load(sys.stdin))]
    zone.seal()
    for case in cases:
        case.start()
    engine.run()
    print(json.dumps([case.end for case in cases]))


main()
