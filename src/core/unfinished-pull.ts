/**
 * A model folder with this file in it is being changed to another revision, or was when the change broke off: its files
 * may be of two revisions, and none may be used before the folder has been pulled again. Who changes a folder and who reads it
 * know nothing of each other but this name.
 */
export const UNFINISHED_PULL_FILE = '.blockdraft-unfinished.json';
