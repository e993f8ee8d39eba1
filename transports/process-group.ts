/** Signals to a server process and all it started, and the promise that none of them outlives this process (STD-03). */

import type { ChildProcess } from "node:child_process";
import { node } from "./node.ts";

const WINDOWS = process.platform === "win32";
const POLL_MS = 20;

/** Groups that may still have a member. One exit hook serves them all, and is gone when they are. */
const live = new Set<ProcessGroup>();

function killAll(): void {
  for (const group of live) group.signal("SIGKILL");
}

/**
 * The process group of a child that was spawned `detached`, so that its pid is the group's id. On Windows, where there
 * are no groups, it is the tree below the child.
 */
export class ProcessGroup {
  readonly #child: ChildProcess;
  readonly #pid: number;
  #exited: boolean;

  constructor(child: ChildProcess, pid: number) {
    this.#child = child;
    this.#pid = pid;
    this.#exited = child.exitCode !== null || child.signalCode !== null;
    child.once("exit", () => {
      this.#exited = true;
    });
    if (live.size === 0) process.on("exit", killAll);
    live.add(this);
  }

  /** Sends a signal to every process of the group; one that is gone does no harm. */
  signal(signal: "SIGTERM" | "SIGKILL"): void {
    if (WINDOWS) {
      if (this.#exited) return;
      if (signal === "SIGKILL") spawnTaskkill(this.#pid);
      else this.#child.kill();
      return;
    }
    try {
      process.kill(-this.#pid, signal);
    } catch {
      // No such group: all its processes have ended.
    }
  }

  /** Whether a process of the group is left. */
  get alive(): boolean {
    if (!this.#exited) return true;
    if (WINDOWS) return false;
    try {
      process.kill(-this.#pid, 0);
    } catch {
      return false;
    }
    return process.platform !== "linux" || hasRunningMember(this.#pid);
  }

  /** Waits until no process of the group is left, for at most `ms` milliseconds. Says whether that came true. */
  async gone(ms: number): Promise<boolean> {
    const end = performance.now() + ms;
    for (;;) {
      if (!this.alive) return true;
      const left = end - performance.now();
      if (left <= 0) return false;
      // The exit of the child is an event; that of its own children has to be asked for.
      if (this.#exited) await pause(Math.min(POLL_MS, left));
      else await this.#childExit(left);
    }
  }

  /** The group is gone, or was given up: it is no longer killed when this process exits. */
  release(): void {
    live.delete(this);
    if (live.size === 0) process.off("exit", killAll);
  }

  #childExit(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#child.off("exit", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#child.on("exit", done);
    });
  }
}

/**
 * Whether a group has a member that is no zombie. Orphans are left to the init process, and in a container there is often
 * none that reaps: a signal can be sent to such a zombie for ever, so only the process table tells.
 */
function hasRunningMember(group: number): boolean {
  let names: string[];
  try {
    names = node.fs.readdirSync("/proc");
  } catch {
    return true;
  }
  return names.some((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const stat = node.fs.readFileSync(`/proc/${name}/stat`, "latin1");
      // The fields behind the command's name, which may hold anything: state, parent, group.
      const [state, , member] = stat.slice(stat.lastIndexOf(")") + 2).split(" ", 3);
      return Number(member) === group && state !== "Z" && state !== "X";
    } catch {
      return false;
    }
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

function spawnTaskkill(pid: number): void {
  const taskkill = ["/pid", String(pid), "/T", "/F"];
  node.childProcess.spawn("taskkill", taskkill, { stdio: "ignore", windowsHide: true }).on("error", () => {});
}
