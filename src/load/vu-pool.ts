/** The virtual users of a test. */
import type { VirtualUser } from './virtual-user.ts';

export class VuPool {
  readonly #open: (vu: number) => Promise<VirtualUser>;
  readonly #free: VirtualUser[] = [];
  readonly #all = new Set<VirtualUser>();
  #next = 1;
  #isClosed = false;

  /** @param open makes the user with this number, from 1 */
  constructor(open: (vu: number) => Promise<VirtualUser>) {
    this.#open = open;
  }

  /** Users that exist. */
  get size(): number {
    return this.#all.size;
  }

  /** Users on loan. */
  get active(): number {
    return this.#all.size - this.#free.length;
  }

  /** Makes users ready, several at a time. */
  async prepare(count: number, signal: AbortSignal, onReady: (done: number) => void): Promise<void> {
    const AT_ONCE = 4;
    let begun = this.#all.size;
    const lane = async () => {
      while (begun < count && !signal.aborted) {
        begun++;
        this.#free.push(await this.#made());
        onReady(this.#all.size);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
  }

  async borrow(): Promise<VirtualUser> {
    return this.#free.shift() ?? this.#made();
  }

  tryBorrow(): VirtualUser | null {
    return this.#free.shift() ?? null;
  }

  /** One more, free. */
  async grow(): Promise<void> {
    this.#free.push(await this.#made());
  }

  /** One that was interrupted is gone; the next borrower gets a new one. */
  giveBack(user: VirtualUser): void {
    if (user.isClosed) this.#all.delete(user);
    else this.#free.push(user);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#all].map((user) => user.close()));
    this.#all.clear();
    this.#free.length = 0;
  }

  async #made(): Promise<VirtualUser> {
    const user = await this.#open(this.#next++);
    if (this.#isClosed) await user.close();
    else this.#all.add(user);
    return user;
  }
}
