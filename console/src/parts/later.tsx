import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Failure, Skeleton } from "./basics.tsx";

/** A part whose code is loaded when it is shown for the first time. `over`: it lies over the page, and has no place until then. */
export function later<P extends object>(load: () => Promise<ComponentType<P>>, over = false): (props: P) => JSX.Element | null {
  let loaded: ComponentType<P> | undefined;
  return function Later(props: P): JSX.Element | null {
    const [Part, show] = useState(() => loaded);
    const [error, fail] = useState<unknown>();
    const [tries, again] = useState(0);
    useEffect(() => {
      if (loaded) return;
      let gone = false;
      fail(undefined);
      load().then(
        (part) => {
          loaded = part;
          if (!gone) show(() => part);
        },
        (e) => !gone && fail(e),
      );
      return () => {
        gone = true;
      };
    }, [tries]);
    if (Part) return <Part {...props} />;
    if (over && error === undefined) return null;
    return error === undefined ? <Skeleton /> : <Failure error={error} again={() => again(tries + 1)} />;
  };
}
